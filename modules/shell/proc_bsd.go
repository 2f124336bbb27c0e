//go:build unix && !linux

package shell

// trustedPath is where programs are looked up unless the app says otherwise.
var trustedPath = []string{"/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "/bin", "/usr/local/go/bin"}
