package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ReadOffers reads tools from JSON: an array, an object with an array "tools",
// or one object a line. A tool may be as chat completions have it
// ({type, function: {name, description, parameters}}), as MCP has it
// ({name, inputSchema}), or plain ({name, parameters}).
func ReadOffers(data []byte) ([]Offer, error) {
	data = bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\xef\xbb\xbf"))
	var list []json.RawMessage
	if bytes.HasPrefix(data, []byte("[")) {
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, err
		}
		return offersOf(list)
	}
	var holder struct{ Tools []json.RawMessage }
	if json.Unmarshal(data, &holder) == nil && holder.Tools != nil {
		return offersOf(holder.Tools)
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return nil, fmt.Errorf("tool %d: %w", len(list)+1, err)
		}
		list = append(list, one)
	}
	return offersOf(list)
}

type offerJSON struct {
	Name, Description string
	Parameters        json.RawMessage
	InputSchema       json.RawMessage
	Input             json.RawMessage `json:"input_schema"`
	Function          *offerJSON
}

func offersOf(list []json.RawMessage) ([]Offer, error) {
	var out []Offer
	for i, raw := range list {
		var o offerJSON
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, fmt.Errorf("tool %d: %w", i+1, err)
		}
		if o.Function != nil {
			o = *o.Function
		}
		if o.Name == "" {
			return nil, fmt.Errorf("tool %d has no name: write {\"name\": …, \"parameters\": {…}}, or the form that chat completions or MCP have", i+1)
		}
		offer := Offer{Name: o.Name, Description: o.Description}
		for _, schema := range []json.RawMessage{o.Parameters, o.InputSchema, o.Input} {
			if len(offer.Parameters) == 0 && len(schema) > 0 && schema[0] == '{' {
				offer.Parameters = schema
			}
		}
		out = append(out, offer)
	}
	return out, nil
}
