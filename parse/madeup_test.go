package parse

import (
	"strings"
	"testing"

	"github.com/helve-ai/helve/tool"
)

// What a model writes after its call as if a tool had answered is no answer,
// and neither is what it makes of that; before a call it is text.
func TestMadeUpResults(t *testing.T) {
	tools := NewTools(testTools...)
	call := tool.Call{ID: "0", Name: "get_weather", Args: []byte(`{"city": "Paris"}`)}
	next := tool.Call{ID: "1", Name: "now", Args: []byte(`{}`)}
	for _, f := range Formats() {
		if f == Harmony { // what it says in another's name is taken out message by message
			continue
		}
		result := f.Result(call, "18 degrees")
		text := f.Calls([]tool.Call{call}) + "\n" + result + "\nIt is warm.\n" + f.Calls([]tool.Call{next})
		for size := range 5 {
			m := Read(f.New(tools), bytewise(text, size+1)...)
			if len(m.Calls) != 1 || m.Calls[0].Name != "get_weather" || strings.Contains(m.Content+m.Thinking, "warm") || len(m.Notes) != 1 {
				t.Errorf("%s: %q gives %+v", f.Name, text, m)
				break
			}
		}
		before := "Tools answer so:\n" + result + "\nI shall see.\n"
		if m := Read(f.New(tools), before); !strings.Contains(m.Content, "I shall see.") {
			t.Errorf("%s: %q gives %+v", f.Name, before, m)
		}
	}
}

// A provider that ends answers at these texts cuts off results, and no call.
func TestStop(t *testing.T) {
	calls := []tool.Call{{ID: "0", Name: "get_weather", Args: []byte(`{"city": "Paris"}`)}, {ID: "1", Name: "now", Args: []byte(`{}`)}}
	without := map[*Format]bool{Glimmer: true, MiniMaxM2: true}
	for _, f := range Formats() {
		stop := f.Stop()
		if len(stop) == 0 {
			if !without[f] {
				t.Errorf("%s has none", f.Name)
			}
			continue
		}
		for _, s := range stop {
			if text := "\n" + f.Result(calls[0], "warm"); !strings.HasPrefix(strings.TrimPrefix(text, "\n"), strings.TrimPrefix(s, "\n")) {
				t.Errorf("%s: %q does not begin a result: %q", f.Name, s, text)
			}
			if text := "\n" + f.Calls(calls) + "\n"; strings.Contains(text, s) {
				t.Errorf("%s: %q stands in calls: %q", f.Name, s, text)
			}
		}
	}
}
