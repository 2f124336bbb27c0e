package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// makeHome makes the folder that a command takes for the user's own, where the
// machine's folders are the command's, too.
func makeHome(s *Spec) (string, error) {
	parent := realPath(os.TempDir())
	if beneath(parent, s.Root) {
		return "", fmt.Errorf("%w: the folder for temporary files, %s, lies inside the root, where tools could place settings for the command; the operator chooses another root or sets TMPDIR", ErrUnconfined, parent)
	}
	home, err := os.MkdirTemp(parent, "helve-home-")
	if err != nil {
		return "", fmt.Errorf("the command's home: %w", err)
	}
	if err := os.Mkdir(filepath.Join(home, "tmp"), 0o700); err != nil {
		return "", errors.Join(fmt.Errorf("the command's home: %w", err), os.RemoveAll(home))
	}
	return home, nil
}

func homeEnv(home string) []string {
	return []string{"HOME=" + home, "TMPDIR=" + filepath.Join(home, "tmp")}
}

// removeHome removes it, with folders that were made read-only (Go's modules).
func removeHome(home string) {
	if os.RemoveAll(home) == nil {
		return
	}
	r, err := os.OpenRoot(home)
	if err != nil {
		return
	}
	defer r.Close()
	_ = fs.WalkDir(r.FS(), ".", func(name string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = r.Chmod(name, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(home)
}
