package lexicon

import (
	"embed"
	"io/fs"
	"path"
)

// data is what the compiled form is made of; listings show it.
//
//go:embed data/*.txt
var data embed.FS

// Shipped returns the data files that come with the program.
func Shipped() ([]File, error) { return filesOf(data, "data") }

func filesOf(fsys fs.FS, dir string) ([]File, error) {
	names, err := fs.Glob(fsys, dir+"/*.txt")
	if err != nil {
		return nil, err
	}
	var out []File
	for _, n := range names {
		text, err := fs.ReadFile(fsys, n)
		if err != nil {
			return nil, err
		}
		out = append(out, File{path.Base(n), text})
	}
	return out, nil
}

// shipped reads the data files that come with the program.
func shipped() ([]file, error) {
	files, err := Shipped()
	out := make([]file, len(files))
	for i, f := range files {
		out[i], _ = parse(f.Name, f.Text)
	}
	return out, err
}

// compile returns the compiled form of data files.
func compile(files []File) ([]byte, error) {
	b := newBuilder(nil)
	for _, f := range files {
		parsed, problems := parse(f.Name, f.Text)
		if len(problems) > 0 {
			return nil, problems[0]
		}
		if err := b.add(parsed); err != nil {
			return nil, err
		}
	}
	l, err := b.lexicon()
	if err != nil {
		return nil, err
	}
	return l.encode(), nil
}
