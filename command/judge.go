package command

import (
	"cmp"
	"strings"
)

// Rules are what a command line is judged by. The zero value permits nothing.
type Rules struct {
	Profile Profile
	// Compound permits lines of several commands when each is permitted on its
	// own: for callers that run the parts themselves, without a shell, and for
	// deciding about texts that a real shell will run.
	Compound bool
	// Resolve is asked for every file that the line names, as it is written,
	// relative names relative to the working directory of the run. It returns
	// an error unless the name resolves, links included, to a place under the
	// root; the file need not exist. Nil refuses every file.
	Resolve func(path string) error
}

// File is a file that a command names.
type File struct {
	Path string
	// Write says that the command changes the file.
	Write bool
	// Maybe says that the name is an argument of project code, which may be a
	// file to read or to write, or none: "build" in npm run build.
	Maybe bool
}

// Judge returns nil when p permits every part of line, which may be only one,
// and otherwise a [*Refusal]. See [Rules] for resolve. What is to run then is
// what [Prepare] returns, not the part's own arguments.
func Judge(line *Line, p Profile, resolve func(path string) error) error {
	return Rules{Profile: p, Resolve: resolve}.Judge(line)
}

// Judge returns nil when the rules permit every part of line, and otherwise a
// [*Refusal] that says which part, why, and what would be right.
func (r Rules) Judge(line *Line) error {
	if r.Profile == Unrestricted {
		return nil
	}
	if r.Profile.rank() == 0 {
		return &Refusal{Construct: "profile", Text: string(r.Profile), Reason: "it is not passive, full or unrestricted"}
	}
	if line == nil || len(line.Parts) == 0 {
		return &Refusal{Construct: "empty command", Reason: "there is no command in it"}
	}
	if line.Compound() && !r.Compound {
		return &Refusal{Construct: "operator", Text: line.Parts[1].Joined, Part: 2, Reason: "under an allowlist profile one call runs one command, without a shell", Remedy: "call once for each command"}
	}
	for i, part := range line.Parts {
		if _, err := r.judge(part); err != nil {
			if line.Compound() {
				err.Part = i + 1
			}
			return err
		}
	}
	return nil
}

// Files returns the files that the line names under the profile, for guards
// that know more about paths than the root. It fails as [Judge] does.
func Files(line *Line, p Profile) ([]File, error) {
	rules := Rules{Profile: p, Compound: true, Resolve: func(string) error { return nil }}
	if err := rules.Judge(line); err != nil || p == Unrestricted {
		return nil, err
	}
	var files []File
	for _, part := range line.Parts {
		read, err := rules.judge(part)
		if err != nil {
			return nil, err
		}
		files = append(files, read.files...)
	}
	return files, nil
}

// judge finds the shape that fits the part and whose files resolve: of several,
// the first of the greatest profile that is permitted.
func (r Rules) judge(part Part) (*reading, *Refusal) {
	if err := checkName(part); err != nil {
		return nil, err
	}
	name := part.Argv[0]
	candidates, known := loaded().byName[name]
	if !known {
		return nil, &Refusal{Construct: "program", Text: name, Reason: "no allowlist profile knows it", Remedy: cmp.Or(loaded().Absent[name], "use a tool made for the task")}
	}
	program := loaded().Programs[name]
	if program == nil {
		program = &Program{}
	}
	var fits *reading
	var first *Refusal
	for _, c := range candidates {
		if fits != nil && c.shape.Profile == fits.shape.Profile {
			continue
		}
		read, err := read(part, program, c)
		if err == nil {
			err = r.resolve(read.files)
		}
		if err == nil && r.Profile.Permits(c.shape.Profile) {
			fits = read
			continue
		}
		if err == nil {
			err = &Refusal{Construct: "program", Text: part.String(), Needs: c.shape.Profile, Reason: "it runs project code or changes files", Remedy: "profile " + string(c.shape.Profile) + " permits it"}
		}
		first = better(first, err)
	}
	if fits != nil {
		return fits, nil
	}
	return nil, first
}

// better chooses the refusal that tells more: a profile that would do, then the
// one of a shape whose words fit.
func better(a, b *Refusal) *Refusal {
	switch {
	case a == nil:
		return b
	case b.Needs != "" && a.Needs == "":
		return b
	case a.Construct == "subcommand" && b.Construct != "subcommand", a.Needs == "" && b.Construct == "path":
		return b
	}
	return a
}

func checkName(part Part) *Refusal {
	if len(part.Argv) == 0 || part.Argv[0] == "" {
		return &Refusal{Construct: "program", Reason: "its name is empty"}
	}
	if strings.ContainsAny(part.Argv[0], `/\`) {
		return &Refusal{Construct: "program", Text: part.Argv[0], Reason: "a path could name any program", Remedy: "write the bare name"}
	}
	return nil
}

func (r Rules) resolve(files []File) *Refusal {
	for _, f := range files {
		if r.Resolve == nil {
			return &Refusal{Construct: "path", Text: f.Path, Reason: "there is no root for it to be under"}
		}
		if err := r.Resolve(f.Path); err != nil {
			return &Refusal{Construct: "path", Text: f.Path, Reason: err.Error(), Remedy: "name a file under the root"}
		}
	}
	return nil
}
