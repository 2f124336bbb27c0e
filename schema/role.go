package schema

import (
	"bytes"
	"slices"
)

// Role says what an argument is, so that guards know which to look at. It is
// written in a schema under the keyword "x-helve-role".
type Role string

const (
	PathRead   Role = "path.read"   // a path that is read
	PathWrite  Role = "path.write"  // a path that is written
	PathDelete Role = "path.delete" // a path that is removed
	URL        Role = "url"         // an address that is fetched
	Command    Role = "command"     // a text that is executed
	Secret     Role = "secret"      // a text that no log may hold
	Artifact   Role = "artifact"    // an artifact's name
)

const roleKeyword = "x-helve-role"

var roles = []Role{PathRead, PathWrite, PathDelete, URL, Command, Secret, Artifact}

// IsPath reports whether the argument is a path, whatever is done with it.
func (r Role) IsPath() bool { return r == PathRead || r == PathWrite || r == PathDelete }

// Known reports whether r is one of the roles above.
func (r Role) Known() bool { return slices.Contains(roles, r) }

// strict roles take nothing that was not written as a string.
func (r Role) strict() bool { return r == Command || r.IsPath() }

func roleNames() []string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return names
}

// mentionsRole reports whether raw may declare a role. An escape could hide
// the keyword, so it counts.
func mentionsRole(raw []byte) bool {
	return bytes.Contains(raw, []byte(roleKeyword)) || bytes.Contains(raw, []byte(`\u`))
}
