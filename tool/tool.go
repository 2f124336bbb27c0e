// Package tool is the vocabulary of the house: what a tool is, how it is called, and what it answers.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/helve-ai/helve/schema"
)

// A Tool is a definition and the function that serves it.
//
// A Tool is plain data: to wrap one, copy it and replace Handle.
type Tool struct {
	Definition
	Handle Handler

	// Targets lists the calls that a call with these arguments would make in turn,
	// so that explanations and early refusals judge the final target and not the
	// indirection. It reads arguments that need not be valid. Nil: it makes none.
	Targets func(args json.RawMessage) []Target

	// Touches lists the places that a call may write or delete beyond its
	// arguments with the roles path.write and path.delete, as absolute paths
	// without links, beneath the root. They are saved before the call runs, a
	// folder with all that it holds. Its error refuses the call. Nil: there are
	// none. The arguments are valid.
	Touches func(ctx context.Context, call *Call) ([]string, error)

	// Preview returns what a call would change, as a unified diff, without
	// changing it; "" if it cannot be shown as one. It is for those who approve
	// calls. The arguments are valid. Nil: nobody can tell.
	Preview func(ctx context.Context, call *Call) (string, error)

	// Summarize returns what is worth knowing of a whole text that the tool
	// answered and that is too long to be shown, in at most that many
	// characters; "" if it cannot tell. The caller reads it in place of the
	// text's beginning and end, beside how to read the whole. Nil: those are
	// shown.
	Summarize func(whole string, most int) string
}

// A Target is a call that a tool makes on behalf of its caller.
type Target struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"params"`
}

// A Handler serves one call. It may be called concurrently.
//
// An error is addressed to the model, which may read it and try again: an
// *Error keeps its code, any other becomes a runtime_error.
type Handler func(ctx context.Context, call *Call) (*Result, error)

// A Definition is what is known of a tool without calling it. It is the one
// place where any of this is stated.
type Definition struct {
	Name        string         // unique in a Set: module.action, snake case; a few meta-tools have no dot
	Module      string         // the module, such as "filesystem" or "mcp.github"; "": Name up to its first dot, or second after mcp
	Title       string         // for people; "": none
	Description string         // what the model reads; the first line is the summary
	Help        string         // longer usage, read by get_tool and by search
	Input       *schema.Schema // of type object; argument roles are a keyword of it
	Output      *schema.Schema // nil: the tool answers in free text
	Effect      Effect         // what calling it may do to the world
	Risk        Risk           // a higher risk than Effect implies; zero: follows from Effect
	Category    Category       // zero: custom
	Group       Group          // what profiles grant; zero: follows from Category and Effect
	Tags        []string       // words by which search may find it
	Aliases     []string       // further names, in any language; those that look like names resolve calls too
	Examples    []json.RawMessage
	SideEffects []string // notes for the caller: what changes besides the answer
	CostClass   CostClass
	Needs       Capabilities
	Timeout     time.Duration // the longest a call may take; zero: the pipeline's default

	MaxResult int // characters of a result that callers see; zero: the pipeline's default

	// HeedsContext says that the handler returns soon after its context ends.
	// Others run in a goroutine of their own, which a call's end may abandon;
	// that costs some microseconds a call.
	HeedsContext bool

	ParallelSafe bool // may run beside other calls of the same reply
	Deferred     bool // left out of direct listings but for its name
	Meta         bool // shown in every mode: how a model reaches the rest
	SearchLike   bool // its arguments are a query: near-equal queries count as repetition
	Trusted      bool // set by the operator on upstream tools: annotations may lower the risk
}

// ModuleName returns the module to which the tool belongs.
func (d *Definition) ModuleName() string {
	if d.Module != "" {
		return d.Module
	}
	module, rest, _ := strings.Cut(d.Name, ".")
	if server, _, deeper := strings.Cut(rest, "."); deeper && module == "mcp" {
		return "mcp." + server
	}
	return module
}

// Action returns the name without the module.
func (d *Definition) Action() string {
	return strings.TrimPrefix(strings.TrimPrefix(d.Name, d.ModuleName()), ".")
}

// Summary returns the first line of the description.
func (d *Definition) Summary() string {
	line, _, _ := strings.Cut(strings.TrimSpace(d.Description), "\n")
	return strings.TrimSpace(line)
}

// RiskLevel returns the risk: what the effect implies, or more where the tool states more.
func (d *Definition) RiskLevel() Risk { return max(d.Risk, d.Effect.Risk()) }

// IsRead reports whether calling the tool changes nothing.
func (d *Definition) IsRead() bool { return d.Effect == Reads }

// A Call is a request to run a tool.
type Call struct {
	ID   string          // correlates the call with its result; the executor makes one up if empty
	Name string          // of the tool, in any form that Set.Resolve knows
	Args json.RawMessage // an object that conforms to Definition.Input
	From Origin          // on whose behalf; nothing in Args can change it
	Tool *Tool           // the tool named; set by the pipeline

	Progress func(Content) // shows part of the result early; set by the pipeline, never nil in a handler
	Trail    *Trail        // what the stages decided; set by the pipeline

	// Reach asks the policy whether the call may go on to a URL that stands in
	// no argument, such as where a redirect leads. It is set by the pipeline for
	// tools with URL arguments; nil: nobody asks.
	Reach func(ctx context.Context, url string) error
}

// Child returns a call that c's tool makes on behalf of c's caller. Its origin
// says so: it names c as parent and c's tool as the way it came.
func (c *Call) Child(id, name string, args json.RawMessage) *Call {
	from := c.From
	from.Parent = c.ID
	via := c.Name
	if c.Tool != nil {
		via = c.Tool.Name
	}
	from.Via = append(from.Via[:len(from.Via):len(from.Via)], via)
	return &Call{ID: id, Name: name, Args: args, From: from, Progress: c.Progress}
}

// An Origin says on whose behalf a call is made, and how it came.
type Origin struct {
	App, Agent, Session, User string
	Profile                   string // to which groups and tools the caller is bound; "": to none
	Kind                      Kind
	Parent                    string   // the id of the call that made this one; "": none
	Via                       []string // the tools through which it came, outermost first
	Under                     *Bound   // the caller that set this one to work; nil: nobody did
}

// A Bound says who set a caller to work, and within which bounds: what that
// one may not call, the caller may not either.
type Bound struct {
	By     Origin
	Call   string   // of that one, by which it did
	Tools  []string // beyond which it may call no tools, but meta-tools; nil: no further bound
	Tree   string   // the call with which it began
	Budget float64  // money; zero: no bound
}

// Outermost returns the caller with which it began: o, unless somebody set it to work.
func (o *Origin) Outermost() *Origin {
	for o.Under != nil {
		o = &o.Under.By
	}
	return o
}

// A Kind is a kind of caller. The zero Kind is treated as a model.
type Kind string

// The kinds of caller. Setup steps, hooks and channel pipelines act as the app
// and not as an agent (SPEC A2).
const (
	KindModel      Kind = "model"
	KindMCP        Kind = "mcp"
	KindHTTP       Kind = "http"
	KindCLI        Kind = "cli"
	KindSetup      Kind = "setup"
	KindHook       Kind = "hook"
	KindChannel    Kind = "channel"
	KindBackground Kind = "background"
	KindWatcher    Kind = "watcher"
	KindSchedule   Kind = "schedule"
	KindScript     Kind = "script"
)

// Daemon reports whether callers of this kind act as the app, so that the
// constraints of agents do not bind them. Denials bind everyone.
func (k Kind) Daemon() bool { return k == KindSetup || k == KindHook || k == KindChannel }

// A Trail is what the pipeline's stages noted about one call as it passed. The
// audit writes it down; explanations return it.
type Trail struct {
	Decision  Verdict         // Allow, unless a stage asked or denied
	Stage     string          // the stage that decided; "" when all let it pass
	Reason    string          // why, in a sentence
	Asked     []string        // why an approval is wanted; empty: none is
	Approver  string          // who approved
	Coercions []string        // what was changed in the arguments to make them fit
	Judged    json.RawMessage // the arguments as they were validated; no stage may replace them after
	Values    []schema.Value  // what of Judged has a role, for the guards; nil before validation
	Truncated bool            // the caller saw only part of the result
	Outside   bool            // the result, or part of it, came from outside
	Bytes     int             // the size of the whole result's text
	Tokens    int             // of arguments and result, estimated; 0: not counted
	Money     string          // what was spent, such as "0.05 USD"; "": nothing
}

// Deny notes that stage refuses the call, and returns the error that says so.
func (t *Trail) Deny(stage string, err *Error) *Error {
	if t != nil {
		t.Decision, t.Stage, t.Reason = Deny, stage, err.Message
	}
	return err
}

// A Verdict is what a stage or a policy says of a call. The most severe wins.
type Verdict int

// The verdicts, from no opinion to the most severe.
const (
	Silent Verdict = iota
	Allow
	Ask
	Deny
)

// String returns the verdict's name in audits and explanations.
func (v Verdict) String() string {
	return [...]string{"silent", "allow", "ask", "deny"}[v]
}

// A Result is the answer to a Call.
type Result struct {
	Content    []Content
	Structured json.RawMessage // conforms to Definition.Output; nil: none
	Err        *Error          // why the call failed, in words for the model; nil: it did not
	Notes      []string        // what was done to arguments or result on the way
	Meta       json.RawMessage // an upstream server's _meta object, passed on unread
}

// A Content is one part of a Result: text, data of some MIME type, or a link.
type Content struct {
	Text string          `json:"text,omitempty"` // a text; for an embedded resource, its text
	MIME string          `json:"mime,omitempty"`
	Data []byte          `json:"data,omitempty"` // an image, a sound, or an embedded resource's bytes
	URI  string          `json:"uri,omitempty"`  // of a resource, embedded or linked
	Link bool            `json:"link,omitempty"` // the resource is only named, not embedded
	Name string          `json:"name,omitempty"` // of a linked resource
	Raw  json.RawMessage `json:"raw,omitempty"`  // the content block as an upstream server sent it, passed on unread; nil: made here
}

// Text returns a Result that consists of one text.
func Text(s string) *Result { return &Result{Content: []Content{{Text: s}}} }

// Fail returns a Result that consists of an error.
func Fail(e *Error) *Result { return &Result{Err: e} }

// JoinText returns the texts of the result's contents, one after another on
// lines of their own. Data and links are named, never spelled out.
func (r *Result) JoinText() string {
	if len(r.Content) == 1 && r.Content[0].isText() {
		return r.Content[0].Text
	}
	var b strings.Builder
	for i, c := range r.Content {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.String())
	}
	return b.String()
}

func (c Content) isText() bool { return c.Data == nil && !c.Link && c.URI == "" }

// String returns the text of c, or a line that names what it is.
func (c Content) String() string {
	switch {
	case c.Link:
		return fmt.Sprintf("[link to %s: %s]", orElse(c.Name, "a resource"), c.URI)
	case c.Data != nil:
		return fmt.Sprintf("[%s, %d bytes]", orElse(c.MIME, "binary data"), len(c.Data))
	}
	return c.Text
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// New returns a Tool served by fn. The schemas that def leaves nil are inferred
// from In and Out (see schema.For for the struct tags, roles among them).
//
// Out may be string (free text), *Result (returned as it is), or any type that
// encodes as JSON, which becomes the structured result.
//
// It panics if a schema cannot be inferred, if In is no struct and def has no
// input schema, or if that is open to unknown properties: these are errors of
// the programmer.
func New[In, Out any](def Definition, fn func(context.Context, In) (Out, error)) *Tool {
	return NewFor(def, func(ctx context.Context, _ *Call, in In) (Out, error) { return fn(ctx, in) })
}

// NewFor is New for functions that also want to know the call.
func NewFor[In, Out any](def Definition, fn func(context.Context, *Call, In) (Out, error)) *Tool {
	switch {
	case def.Input == nil:
		def.Input = schema.For[In]()
		if !def.Input.Closed() {
			panic(fmt.Sprintf("tool %s: the input is a %v: it must be a struct, whose fields are the arguments", def.Name, reflect.TypeFor[In]()))
		}
	case !def.Input.Closed():
		// encoding/json matches keys by case-folding: an open schema would let
		// a property reach fn that no guard has judged.
		panic("tool " + def.Name + ": the input schema must have additionalProperties: false")
	}
	if def.Output == nil && !answersItself[Out]() {
		def.Output = schema.For[Out]()
	}
	return &Tool{Definition: def, Handle: func(ctx context.Context, call *Call) (*Result, error) {
		var in In
		if err := decode(call.Args, &in); err != nil {
			return nil, Errorf(CodeValidation, "arguments: %v", err)
		}
		out, err := fn(ctx, call, in)
		if err != nil {
			return nil, err
		}
		return resultOf(out)
	}}
}

// decode reads arguments into v. To JSON Schema 3.0 and 1e3 are integers, to
// encoding/json they are not: such numbers are written out on a second try.
func decode(args json.RawMessage, v any) error {
	err := json.Unmarshal(args, v)
	var mismatch *json.UnmarshalTypeError
	if err == nil || !errors.As(err, &mismatch) || !strings.HasPrefix(mismatch.Value, "number") {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return err
	}
	plain, again := json.Marshal(integers(tree))
	if again != nil || json.Unmarshal(plain, v) != nil {
		return err
	}
	return nil
}

// integers writes numbers without a fraction as integers.
func integers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if len(v) > 31 {
			return v
		}
		if r, ok := new(big.Rat).SetString(v.String()); ok && r.IsInt() {
			return json.RawMessage(r.Num().String())
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}

func resultOf(out any) (*Result, error) {
	switch out := out.(type) {
	case string:
		return Text(out), nil
	case *Result:
		return out, nil
	}
	data, err := Encode(out)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return &Result{Content: []Content{{Text: string(data)}}, Structured: data}, nil
}

// Encode is json.Marshal without the escaping of HTML, which is noise to a model.
func Encode(v any) (json.RawMessage, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), nil
}

func answersItself[Out any]() bool {
	switch any(*new(Out)).(type) {
	case string, *Result:
		return true
	}
	return false
}

// Decode reads the arguments of a call into v, as the tools that New makes do.
func (c *Call) Decode(v any) error { return decode(c.Args, v) }

// Previewing returns t with a Preview served by fn, which is given the
// arguments.
func Previewing[In any](t *Tool, fn func(context.Context, In) (string, error)) *Tool {
	t.Preview = func(ctx context.Context, call *Call) (string, error) {
		var in In
		if err := call.Decode(&in); err != nil {
			return "", err
		}
		return fn(ctx, in)
	}
	return t
}

// Summarizing returns t with that Summarize.
func Summarizing(t *Tool, fn func(whole string, most int) string) *Tool {
	t.Summarize = fn
	return t
}

// Touching returns t with a Touches served by fn, which is given the arguments.
func Touching[In any](t *Tool, fn func(context.Context, In) ([]string, error)) *Tool {
	t.Touches = func(ctx context.Context, call *Call) ([]string, error) {
		var in In
		if err := call.Decode(&in); err != nil {
			return nil, err
		}
		return fn(ctx, in)
	}
	return t
}
