package inject_test

import (
	"context"
	"fmt"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/tool"
)

// A hundred tools, shown as the model's window bears it.
func Example() {
	var reg tool.Registry
	for i := range 100 {
		err := reg.Add(tool.New(tool.Definition{Name: fmt.Sprintf("sensors.read_%d", i), Description: "Read a sensor.", Effect: tool.Reads},
			func(context.Context, struct {
				Unit string `json:"unit,omitempty" jsonschema:"in which unit the value is told" enum:"celsius,kelvin,fahrenheit"`
			}) (float64, error) {
				return 20, nil
			}))
		if err != nil {
			panic(err)
		}
	}
	for _, window := range []int{128_000, 20_000, 8_000} {
		view := inject.Present(reg.Set(), inject.Options{Window: window})
		fmt.Println(window, view.Mode)
	}
	// Output:
	// 128000 direct
	// 20000 compact_direct
	// 8000 discovery
}
