package module

// A Delegate is an agent to whom another may give work.
type Delegate struct{ ID, Specialty string }

// Work is what an agent is given to do.
type Work struct {
	Agent    string
	Task     string
	Tools    []string // beyond which it may call none; nil: no further bound
	MaxTurns int      // zero: what the limits of the app allow
	Budget   float64  // money; zero: no further bound
	Mute     bool     // it answers without tools
}

// Done is what became of work.
type Done struct {
	Agent, Session string
	Outcome        string // answered, or why not
	Detail         string // of an Outcome that is not answered
	Text           string // what it reports
	Turns, Calls   int
}

// SwitchTool is the tool by which an agent hands its conversation over.
const SwitchTool = "switch_agent"
