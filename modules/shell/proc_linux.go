package shell

// trustedPath is where programs are looked up unless the app says otherwise.
var trustedPath = []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/go/bin"}
