package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// systemDirs hold the programs of a machine and their settings. They can be
// read under every confinement; of the other folders of a machine commands
// see nothing.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store", "/snap"}

// holdsSystem reports whether a folder is too large to be granted.
func holdsSystem(dir string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin", "/etc", "/lib", "/dev", "/proc", "/sys", "/run", "/boot"}, func(system string) bool {
		return beneath(system, dir)
	})
}

// credentials are the files and folders of a home in which programs keep what
// nobody else may know. They matter where the home lies in the root.
var credentials = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/rclone",
	".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".vault-token", ".terraform.d", ".password-store",
	".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium",
	".claude", ".claude.json", ".codex", ".gemini", ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".node_repl_history",
}

// secretsOfHome lists what of a home is hidden where it lies in a folder that
// a command sees.
func secretsOfHome(home string, seen []string) []string {
	var hidden []string
	for _, name := range credentials {
		path := filepath.Join(home, name)
		if _, err := os.Lstat(path); err == nil {
			hidden = append(hidden, path)
		}
	}
	return within(hidden, seen)
}

// within returns the real places of those paths that lie beneath a folder that
// a command sees. What it is granted by name is not among them.
func within(paths, seen []string) []string {
	var found []string
	for _, path := range paths {
		path = realPath(path)
		if slices.ContainsFunc(seen, func(dir string) bool { return path != dir && beneath(path, dir) }) && !slices.Contains(seen, path) {
			found = append(found, path)
		}
	}
	return found
}

const (
	maxSystemFiles = 50_000
	systemAge      = time.Minute
)

// systemSecrets are the files and folders in /etc and /opt that not everybody
// may read. What confines a command makes it nobody special, but the files of
// the user who runs it would be open to it, and root's are those of the system.
var systemSecrets struct {
	sync.Mutex
	read   time.Time
	hidden []string
}

// hiddenInSystem returns what is hidden of the system's folders.
func hiddenInSystem() []string {
	s := &systemSecrets
	s.Lock()
	defer s.Unlock()
	if time.Since(s.read) < systemAge {
		return s.hidden
	}
	s.hidden = nil
	for _, dir := range []string{"/etc", "/opt"} {
		s.hidden = append(s.hidden, unreadable(dir)...)
	}
	s.read = time.Now()
	return s.hidden
}

// unreadable lists what in dir is not for everybody; dir itself where there is
// too much in it to tell.
func unreadable(dir string) []string {
	var found []string
	left := maxSystemFiles
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if d != nil && d.IsDir() && path != dir {
				found = append(found, path)
				return fs.SkipDir
			}
			return nil
		}
		if left--; left < 0 || len(found) > maxMasks/2 {
			return fs.ErrInvalid
		}
		info, err := d.Info()
		if err != nil || path == dir || info.Mode()&fs.ModeSymlink != 0 {
			return nil
		}
		closed := info.Mode()&0o004 == 0
		if d.IsDir() {
			closed = info.Mode()&0o005 != 0o005
		}
		if closed && !slices.Contains(found, path) {
			found = append(found, path)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	if err != nil {
		return []string{dir}
	}
	return found
}

// maxMasks bounds what is hidden or kept in one run: each costs a mount.
const maxMasks = 512

// resolverFile is what /etc/resolv.conf may be a link to, in a folder that
// commands do not see; "" if there is none.
func resolverFile() string {
	real := realPath("/etc/resolv.conf")
	if strings.HasPrefix(real, "/etc/") {
		return ""
	}
	if _, err := os.Stat(real); err != nil {
		return ""
	}
	return real
}
