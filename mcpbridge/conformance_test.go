package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// conformant returns an upstream server with the resources, the prompts and
// the talkative tools that the conformance suite asks for.
func conformant() *mcp.Server {
	nop := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s := mcp.NewServer(&mcp.Implementation{Name: "conformant", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   nop,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"testing"}}}, nil
		},
	})
	for uri, c := range map[string]mcp.ResourceContents{
		"test://static-text":      {MIMEType: "text/plain", Text: "This is the content of the static text resource."},
		"test://static-binary":    {MIMEType: "image/png", Blob: []byte("png")},
		"test://watched-resource": {MIMEType: "text/plain", Text: "watched"},
	} {
		c.URI = uri
		s.AddResource(&mcp.Resource{URI: uri, Name: uri, MIMEType: c.MIMEType}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&c}}, nil
		})
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "data"}, reads("data"))
	say := func(name, description string, make func(args map[string]string) []mcp.Content, args ...string) {
		p := &mcp.Prompt{Name: name, Description: description}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			res := &mcp.GetPromptResult{}
			for _, c := range make(r.Params.Arguments) {
				res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			return res, nil
		})
	}
	say("test_simple_prompt", "Simple.", func(map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.TextContent{Text: "This is a simple prompt for testing."}}
	})
	say("test_prompt_with_arguments", "With arguments.", func(a map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}}
	}, "arg1", "arg2")
	say("test_prompt_with_embedded_resource", "With a resource.", func(a map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded."}}}
	}, "resourceUri")
	say("test_prompt_with_image", "With an image.", func(map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"}}
	})
	s.AddTool(&mcp.Tool{Name: "test_tool_with_logging", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: text}); err != nil {
					return nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "logged"}}}, nil
		})
	for name, form := range forms {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Please.", RequestedSchema: json.RawMessage(form)})
				if err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s, %v", res.Action, res.Content)}}}, nil
			})
	}
	return s
}

// forms are what tools ask their client, by the names by which the suite calls them.
var forms = map[string]string{
	"test_elicitation": `{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string"}},"required":["username","email"]}`,
	"test_elicitation_sep1034_defaults": `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},` +
		`"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`,
	"test_elicitation_sep1330_enums": `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
		`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]},` +
		`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
		`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},` +
		`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"}]}}}}`,
}

// modern is the tool in whose schema the suite looks for the newer keywords.
func modern() *tool.Tool {
	t := handled("json_schema_2020_12_tool", tool.Reads, echo().Handle)
	t.Input = schema.Must(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"type":"object",` +
		`"properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`)
	return t
}

// scenarios are those of the suite that pass. The two others want a server
// that asks its client to sample, which is deprecated and not built, or to
// come back later for the rest of an answer.
var scenarios = []string{"server-initialize", "logging-set-level", "ping", "completion-complete", "tools-list",
	"tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content",
	"tools-call-with-logging", "tools-call-error", "tools-call-with-progress", "json-schema-2020-12", "server-sse-multiple-streams",
	"resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read", "resources-subscribe", "resources-unsubscribe",
	"prompts-list", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
	"tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums", "dns-rebinding-protection"}

func TestConformance(t *testing.T) {
	command := npm(t, "conformance")
	h, g := gateway(t, nil, rename(serveHTTP(t, conformant(), false), "theirs"))
	if err := g.reg.Replace("house", append(houseTools(), modern())...); err != nil {
		t.Fatal(err)
	}
	web := h.http(t, "direct").URL
	for _, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			if !strings.Contains(scenario, "elicitation") { // nobody is asked while several clients call
				t.Parallel()
			}
			out, err := exec.CommandContext(t.Context(), command, "server", "--url", web, "--scenario", scenario).CombinedOutput()
			if err != nil || !strings.Contains(string(out), ", 0 failed") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestInspectorSeesOffers(t *testing.T) {
	npm(t, "mcp-inspector")
	h, _ := gateway(t, nil, mcpbridge.Upstream{Name: "all", Command: npm(t, "mcp-server-everything")})
	web := h.http(t, "").URL
	for _, row := range []struct{ args, want string }{
		{"resources/list", `"uri": "demo://resource/static`},
		{"resources/templates/list", `"uriTemplate": "demo://resource/dynamic/text/{`},
		{"prompts/list", `"name": "all__simple-prompt"`},
		{"prompts/get --prompt-name all__simple-prompt", `"role": "user"`},
		{"resources/read --uri demo://resource/dynamic/text/1", `"uri": "demo://resource/dynamic/text/1"`},
	} {
		out := inspect(t, append([]string{web, "--transport", "http", "--method"}, strings.Fields(row.args)...)...)
		if !strings.Contains(out, row.want) {
			t.Errorf("%s has no %s in\n%.2000s", row.args, row.want, out)
		}
	}
}
