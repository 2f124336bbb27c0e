package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/tool"
)

// A module of one's own stands beside those that Helve comes with: it is
// declared and configured in the app file, and its calls take the same way.
func ExampleOpen() {
	type config struct {
		Greeting string `json:"greeting" jsonschema:"what is said before the name"`
	}
	type input struct {
		Name string `json:"name" jsonschema:"who is greeted"`
	}
	greeter := module.New("greeter", "Greets people.", config{Greeting: "Hello"},
		func(ctx context.Context, h *module.Host, c config) (*module.Toolset, error) {
			return &module.Toolset{Tools: []*tool.Tool{
				tool.New(tool.Definition{Name: "greeter.greet", Description: "Greet somebody.", Effect: tool.Reads},
					func(ctx context.Context, in input) (string, error) { return c.Greeting + ", " + in.Name, nil }),
			}}, nil
		})
	modules := append(std.Modules(), greeter)

	conf, err := app.Parse("greet.yaml", []byte(`
app: {app_id: greet, name: Greet}
tools:
  modules:
    greeter: {config: {greeting: Bonjour}}
`), app.LoadOptions{Modules: modules})
	if err != nil {
		panic(err) // every mistake with its line, its column and what would be right
	}
	root, err := os.MkdirTemp("", "greet")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)

	ctx := context.Background()
	a, err := app.Open(ctx, app.Options{Config: conf, Modules: modules, Root: root})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	res, err := a.Call(ctx, &tool.Call{Name: "greeter.greet", Args: json.RawMessage(`{"name":"Ada"}`), From: a.Origin(tool.KindCLI, "", "ada")})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.JoinText())
	// Output: Bonjour, Ada
}
