package std_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/tool"
	"github.com/helve-ai/helve/tool/tooltest"
)

func TestTools(t *testing.T) {
	var all []*tool.Tool
	var names []string
	for _, m := range std.Modules() {
		names = append(names, m.Name)
		if !strings.HasSuffix(m.Doc, ".") {
			t.Errorf("module %s: its description is no sentence", m.Name)
		}
		if err := m.Config.Compile(); err != nil {
			t.Errorf("module %s: the schema of its configuration: %v", m.Name, err)
		}
		tools, err := m.Describe(t.Context())
		if err != nil {
			t.Fatalf("module %s cannot be described without a host: %v", m.Name, err)
		}
		all = append(all, tools...)
	}
	if !slices.IsSorted(names) {
		t.Errorf("the modules are not in the order of their names: %v", names)
	}
	tooltest.Check(t, all...)
}
