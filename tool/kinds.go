package tool

import (
	"fmt"
	"strings"
)

// An Effect says what a call may do to the world. The zero Effect is the cautious one.
type Effect int

// The effects (SPEC T2).
const (
	Unknown  Effect = iota // not stated: treated as Destroys
	Reads                  // changes nothing
	Writes                 // changes something, reversibly
	Destroys               // may change something for good
)

var effects = [...]string{"unknown", "reads", "writes", "destroys"}

// String returns the effect's name.
func (e Effect) String() string { return effects[e] }

// Risk returns the risk that follows from the effect.
func (e Effect) Risk() Risk { return [...]Risk{High, Low, Medium, High}[e] }

// ParseEffect returns the named effect.
func ParseEffect(s string) (Effect, error) {
	for i, n := range effects {
		if n == s {
			return Effect(i), nil
		}
	}
	return Unknown, fmt.Errorf("effect %q: want one of %s", s, strings.Join(effects[:], ", "))
}

// A Risk is how much harm a call may do. The zero Risk states nothing.
type Risk int

// The risks.
const (
	Unstated Risk = iota
	Low
	Medium
	High
)

var risks = [...]string{"unstated", "low", "medium", "high"}

// String returns the risk's name.
func (r Risk) String() string { return risks[r] }

// ParseRisk returns the named risk.
func ParseRisk(s string) (Risk, error) {
	for i, n := range risks {
		if n == s && i > 0 {
			return Risk(i), nil
		}
	}
	return Unstated, fmt.Errorf("risk %q: want one of %s", s, strings.Join(risks[1:], ", "))
}

// A Category is the field to which a tool belongs (SPEC T5).
type Category string

// The categories. The zero Category is treated as Custom.
const (
	Filesystem  Category = "filesystem"
	Network     Category = "network"
	Shell       Category = "shell"
	Search      Category = "search"
	Memory      Category = "memory"
	Knowledge   Category = "knowledge"
	AgentWork   Category = "agent"
	Workflow    Category = "workflow"
	Schedule    Category = "schedule"
	Interaction Category = "interaction"
	Database    Category = "database"
	Coding      Category = "code"
	Document    Category = "document"
	Custom      Category = "custom"
)

// A Group is what an agent's profile grants (SPEC T5).
type Group string

// The groups.
const (
	GroupRead  Group = "read"
	GroupVault Group = "vault"
	GroupEdit  Group = "edit"
	GroupWeb   Group = "web"
	GroupAgent Group = "agent"
	GroupMCP   Group = "mcp"
	GroupSkill Group = "skill"
)

// Groups lists the groups.
func Groups() []Group {
	return []Group{GroupRead, GroupVault, GroupEdit, GroupWeb, GroupAgent, GroupMCP, GroupSkill}
}

// GroupName returns the tool's group: the one stated, else what follows from
// its module, category and effect.
func (d *Definition) GroupName() Group {
	switch {
	case d.Group != "":
		return d.Group
	case strings.HasPrefix(d.Name, "mcp."):
		return GroupMCP
	}
	switch d.Category {
	case Network:
		return GroupWeb
	case AgentWork, Workflow, Schedule, Interaction, Search:
		return GroupAgent
	case Shell:
		return GroupSkill
	case Memory, Knowledge:
		if d.IsRead() {
			return GroupVault
		}
	}
	if d.IsRead() {
		return GroupRead
	}
	return GroupEdit
}

// A CostClass says who pays for a call. The zero CostClass is FreeLocal.
type CostClass string

// The cost classes (SPEC M1).
const (
	FreeLocal    CostClass = "free-local"
	PaidCloud    CostClass = "paid-cloud"
	PremiumCloud CostClass = "premium-cloud"
)

// Capabilities are what a tool needs of the machine.
type Capabilities uint8

// The capabilities.
const (
	NeedsNetwork Capabilities = 1 << iota
	NeedsFilesystem
	NeedsProcess
)

// Has reports whether c includes all of other.
func (c Capabilities) Has(other Capabilities) bool { return c&other == other }

// String lists the capabilities, separated by commas.
func (c Capabilities) String() string {
	var names []string
	for i, n := range [...]string{"network", "filesystem", "process"} {
		if c&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}
