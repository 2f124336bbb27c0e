package shell

import (
	"path/filepath"
	"strings"
)

// shellProgram is the shell that comes with Git, if the trusted folders have it.
const (
	shellProgram  = "sh"
	programSuffix = ".exe"
)

// trustedPath is where programs are looked up unless the app says otherwise.
var trustedPath = []string{`C:\Windows\System32`, `C:\Program Files\Git\cmd`, `C:\Program Files\Git\usr\bin`, `C:\Program Files\Go\bin`, `C:\Program Files\nodejs`}

// isAbs reports whether a name is absolute in a form that package path does not know.
func isAbs(name string) bool {
	return filepath.IsAbs(name) || filepath.VolumeName(name) != "" || strings.HasPrefix(name, `\`)
}
