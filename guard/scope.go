package guard

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/helve-ai/helve/approval"
	"github.com/helve-ai/helve/tool"
)

// scopeKey keeps arguments from being guessed by what is kept of them; scopes
// are good within the process only.
var scopeKey = []byte(rand.Text())

// Scope returns what an approval of a call for the session covers. That is the
// rule by which it is asked about, if every value matches it; a compound
// command of which one part does, and calls about which the defaults ask, are
// covered by the same arguments only. The arguments have been validated.
func (r *Rules) Scope(c *tool.Call) approval.Scope {
	if rule := matching(r.Approve, c, anyValue); rule != nil && rule.holds(c, everyValue) {
		shown := "every call of " + c.Tool.Name + " that the rule " + rule.String() + " asks about"
		if !rule.Conditional() {
			shown = "every call of " + c.Tool.Name + ", whatever its arguments"
		}
		return approval.Scope{Shown: shown, Key: "rule " + rule.String()}
	}
	d := json.NewDecoder(bytes.NewReader(c.Args))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return approval.Scope{}
	}
	canonical, err := json.Marshal(tree)
	if err != nil {
		return approval.Scope{}
	}
	sum := hmac.New(sha256.New, scopeKey)
	sum.Write(canonical)
	return approval.Scope{Shown: "calls of " + c.Tool.Name + " with exactly these arguments", Key: "args " + hex.EncodeToString(sum.Sum(nil))}
}
