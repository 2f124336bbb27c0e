package llm

import "encoding/json"

// keptCall is a Call as it is kept: arguments that are no JSON are a text.
type keptCall struct {
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args,omitempty"`
	Raw    *string         `json:"args_text,omitempty"`
	Opaque json.RawMessage `json:"opaque,omitempty"`
	From   string          `json:"from,omitempty"`
}

// MarshalJSON writes a call whatever its arguments are.
func (c Call) MarshalJSON() ([]byte, error) {
	k := keptCall{ID: c.ID, Name: c.Name, Args: c.Args, Opaque: c.Opaque, From: c.From}
	if len(c.Args) > 0 && !json.Valid(c.Args) {
		raw := string(c.Args)
		k.Args, k.Raw = nil, &raw
	}
	return json.Marshal(k)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Call) UnmarshalJSON(data []byte) error {
	var k keptCall
	if err := json.Unmarshal(data, &k); err != nil {
		return err
	}
	*c = Call{ID: k.ID, Name: k.Name, Args: k.Args, Opaque: k.Opaque, From: k.From}
	if k.Raw != nil {
		c.Args = json.RawMessage(*k.Raw)
	}
	return nil
}
