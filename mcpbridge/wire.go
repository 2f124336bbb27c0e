package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The library decodes what servers answer into types of its own, which loses
// the order of keys, big integers and what it does not know. So requests whose
// answers are wanted as they came go through the library as methods of our
// own, and get their right names when they are written.
const aliasPrefix = "helve:"

const (
	methodListTools     = "tools/list"
	methodCallTool      = "tools/call"
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodReadResource  = "resources/read"
	methodListPrompts   = "prompts/list"
	methodGetPrompt     = "prompts/get"
	methodComplete      = "completion/complete"
	methodListSkills    = "skills/list"
	methodGetSkill      = "skills/get"
	methodReadDirectory = "resources/directory/read"
)

// A rawParams holds the parameters of every such method.
type rawParams struct {
	mcp.ParamsBase
	Cursor    string          `json:"cursor,omitempty"`
	Name      string          `json:"name,omitempty"`
	URI       string          `json:"uri,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`

	// Of a call that is made again with what the server asked for.
	Responses mcp.InputResponseMap `json:"inputResponses,omitempty"`
	State     string               `json:"requestState,omitempty"`

	TaskID string `json:"taskId,omitempty"`

	// Of a completion.
	Ref      *mcp.CompleteReference      `json:"ref,omitempty"`
	Argument *mcp.CompleteParamsArgument `json:"argument,omitempty"`
	Context  *mcp.CompleteContext        `json:"context,omitempty"`
}

// A rawResult is a result as it came.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// UnmarshalJSON keeps the bytes.
func (r *rawResult) UnmarshalJSON(raw []byte) error {
	r.raw = bytes.Clone(raw)
	return nil
}

// rawMethods are those whose answers are wanted as they came.
var rawMethods = []string{methodListTools, methodCallTool, methodListResources, methodListTemplates,
	methodReadResource, methodListPrompts, methodGetPrompt, methodComplete,
	methodListSkills, methodGetSkill, methodReadDirectory,
	methodGetTask, methodUpdateTask, methodCancelTask}

func isRaw(method string) bool { return slices.Contains(rawMethods, method) }

func addMethods(c *mcp.Client) error {
	for _, m := range rawMethods {
		if err := mcp.AddSendingCustomMethod[*rawParams, *rawResult](c, aliasPrefix+m); err != nil {
			return err
		}
	}
	return nil
}

// callRaw returns a method's result as it came.
func callRaw(ctx context.Context, session *mcp.ClientSession, method string, p rawParams) (json.RawMessage, error) {
	res, err := mcp.CallCustomMethod[*rawParams, *rawResult](ctx, session, aliasPrefix+method, &p)
	if err != nil {
		return nil, err
	}
	return res.raw, nil
}

// trueName gives a request the name that the server knows.
func trueName(msg jsonrpc.Message) jsonrpc.Message {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !strings.HasPrefix(req.Method, aliasPrefix) {
		return msg
	}
	renamed := *req
	renamed.Method = strings.TrimPrefix(req.Method, aliasPrefix)
	return &renamed
}

// plain says an error of the library in words for people.
func plain(err error) string {
	if e := refusedBy(err); e != nil && e.Message != "" {
		return cut(printable(e.Message), maxErrorText)
	}
	text := libraryWords.ReplaceAllString(strings.ReplaceAll(err.Error(), aliasPrefix, ""), "")
	text = noKind.ReplaceAllString(text, "what answers at the url does not say what it sends (Content-Type): is the url right?")
	text = noMessage.ReplaceAllString(text, "what answers at the url sends $1, which no MCP server does: is the url right?")
	return cut(printable(text), maxErrorText)
}

// unread says why a message cannot be read, without the names of Go's types.
func unread(err error) string {
	if strings.Contains(err.Error(), "Go struct") || strings.Contains(err.Error(), "Go value") {
		return "it has not the form of the protocol"
	}
	return plain(err)
}

// What the library says of an answer that is none.
var (
	noKind    = regexp.MustCompile(`^unsupported content type ""$`)
	noMessage = regexp.MustCompile(`^unsupported content type "([^"]*)"$`)
)

// libraryWords are what the library puts before an error on its way up.
var libraryWords = regexp.MustCompile(`^(?:(?:calling|sending) "[^"]*": |rejected by transport: |connection closed: |client is closing: )+`)

// maxErrorText is how many bytes of a server's error are passed on.
const maxErrorText = 8 << 10
