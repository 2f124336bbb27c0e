package module

// A Skill is a set of instructions for one kind of work, which an agent loads
// when it needs them.
type Skill struct {
	Command     string // its name in calls
	Name        string // in its front matter; "": it has none there
	Folder      string // in which it lies with its files; "": it is a single file
	Description string
	Text        string   // the instructions
	Tools       []string // beyond which none may be called while it is loaded, but meta-tools; nil: no bound
	NeedsNet    bool     // commands reach the network while it is loaded
	PassEnv     []string // variables that commands see while it is loaded
	Withheld    []string // those that it wants and commands do not see: they look like credentials
}

// A ServerSkill is a skill of an upstream server.
type ServerSkill struct {
	Name        string // in calls: SERVER:PATH
	Description string
}

// A Grant is what a module lets the commands of a caller have beside what its
// configuration does.
type Grant struct {
	Network bool
	Env     []string // names of Helve's environment variables
}
