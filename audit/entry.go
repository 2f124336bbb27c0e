package audit

import (
	"encoding/json"
	"time"
)

// An Entry tells of one call. Empty fields are left out of the line. Text that
// is not UTF-8 is written with U+FFFD in place of what is not.
type Entry struct {
	Time    time.Time `json:"time"` // when the call came; zero: when it is appended
	App     string    `json:"app,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Session string    `json:"session,omitempty"`
	User    string    `json:"user,omitempty"`
	Kind    string    `json:"kind,omitempty"` // of the caller; "recovered" is the log's own

	Call   string   `json:"call,omitempty"`
	Parent string   `json:"parent,omitempty"` // the call that made this one
	Via    []string `json:"via,omitempty"`    // indirections, outermost first

	Tool   string `json:"tool,omitempty"`
	Effect string `json:"effect,omitempty"`
	// Args are already redacted. What is not valid JSON (or is nested more
	// than 500 deep) is written as one JSON string.
	Args json.RawMessage `json:"args,omitempty"`

	Decision string `json:"decision,omitempty"` // allow, ask or deny
	Stage    string `json:"stage,omitempty"`    // that decided
	Reason   string `json:"reason,omitempty"`
	Approver string `json:"approver,omitempty"`

	Duration     time.Duration `json:"duration_ns,omitempty"`
	ResultBytes  int           `json:"result_bytes,omitempty"`
	ResultDigest string        `json:"result_digest,omitempty"`
	Error        string        `json:"error,omitempty"` // code
	Cost         Cost          `json:"cost,omitzero"`
	Notes        []string      `json:"notes,omitempty"` // coercions
	Truncated    bool          `json:"truncated,omitempty"`
}

// A Cost is what a call used up.
type Cost struct {
	Tokens int    `json:"tokens,omitempty"`
	Money  string `json:"money,omitempty"` // amount and currency, such as "0.0031 USD"
}

// A Record is an Entry as it stands in the log.
type Record struct {
	Seq uint64 `json:"seq"`
	Entry
	Prev string `json:"prev"`
	Hash string `json:"hash"`
	File string `json:"file,omitempty"` // name of the file that has it; not part of the line
}

// Recovered is the kind of the lines that the log writes itself, to tell what
// it found damaged or could not write.
const Recovered = "recovered"
