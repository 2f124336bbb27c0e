package telemetry

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/helve-ai/helve/llm"
)

// About says which model it is.
type About struct {
	Provider string // such as "openai", as llm/provider names them
	Model    string // that is asked for; "": there is no choice
	URL      string // where its API is; "": here
}

// conventional are the names of providers that the conventions have and we
// write otherwise.
var conventional = map[string]string{"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}

// Model returns a model that tells of every request to m. A nil Telemetry
// returns m itself.
func (t *Telemetry) Model(m llm.Model, a About) llm.Model {
	if t == nil {
		return m
	}
	w := &watched{Model: m, t: t, name: "chat"}
	if a.Model != "" {
		w.name += " " + a.Model
	}
	provider := a.Provider
	if known, ok := conventional[provider]; ok {
		provider = known
	}
	w.about = []attribute.KeyValue{attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", provider)}
	w.about = set(w.about, "gen_ai.request.model", a.Model)
	if u, err := url.Parse(a.URL); err == nil && u.Host != "" {
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		w.about = at(w.about, u.Hostname(), port)
	}
	return w
}

// A watched model is told of.
type watched struct {
	llm.Model
	t     *Telemetry
	name  string
	about []attribute.KeyValue
}

func (w *watched) Generate(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		ctx, op := w.t.begin(ctx, w.name, trace.SpanKindClient, w.t.models)
		h := heard{failure: "cancelled"} // should nobody hear it to its end
		defer func() { h.end(ctx, w, &op, req) }()
		for chunk, err := range w.Model.Generate(ctx, req) {
			h.take(ctx, chunk, err, op.begun)
			if !yield(chunk, err) {
				return
			}
		}
		if h.failure == "cancelled" && context.Cause(ctx) == nil {
			h.failure = ""
		}
	}
}

// heard is what came of a request.
type heard struct {
	source  llm.Source
	usage   llm.Usage
	stop    llm.Stop
	first   time.Duration // until something came; zero: nothing did
	failure string
}

func (h *heard) take(ctx context.Context, c llm.Chunk, err error, begun time.Time) {
	if h.first == 0 && err == nil {
		h.first = time.Since(begun)
	}
	if c.Source != nil {
		h.source = *c.Source
	}
	if c.Usage != nil {
		h.usage = *c.Usage
	}
	if c.Stop != "" {
		h.stop, h.failure = c.Stop, ""
	}
	if err != nil {
		h.failure = failureOf(ctx, err)
	}
}

// failureOf names the kind of a failure. It tells no message.
func failureOf(ctx context.Context, err error) string {
	var e *llm.Error
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case ctx.Err() != nil:
		return "cancelled"
	case errors.As(err, &e) && e.Status != 0:
		return strconv.Itoa(e.Status)
	}
	return "_OTHER"
}

// finishes are the conventions' names of why answers end.
var finishes = map[llm.Stop]string{llm.StopEnd: "stop", llm.StopCalls: "tool_call", llm.StopLength: "length", llm.StopRefusal: "content_filter", llm.StopOther: "error"}

func (h *heard) end(ctx context.Context, w *watched, op *operation, req *llm.Request) {
	measured := set(w.about[:len(w.about):len(w.about)], "gen_ai.response.model", h.source.Model)
	if op.span.IsRecording() {
		op.span.SetAttributes(h.about(req)...)
	}
	for kind, n := range map[string]int{"input": h.usage.Input, "output": h.usage.Output} {
		if n > 0 {
			w.t.tokens.Record(ctx, int64(n), metric.WithAttributes(append(measured[:len(measured):len(measured)], attribute.String("gen_ai.token.type", kind))...))
		}
	}
	op.end(ctx, h.failure, measured)
}

// about is what is told of a request in its span alone.
func (h *heard) about(req *llm.Request) []attribute.KeyValue {
	var all []attribute.KeyValue
	all = set(all, "gen_ai.conversation.id", req.Session)
	all = set(all, "gen_ai.response.id", h.source.ID)
	if h.stop != "" {
		all = append(all, attribute.StringSlice("gen_ai.response.finish_reasons", []string{finishes[h.stop]}))
	}
	if h.first > 0 {
		all = append(all, attribute.Float64("gen_ai.response.time_to_first_chunk", h.first.Seconds()))
	}
	all = usage(all, h.usage)
	if req.Temperature != nil {
		all = append(all, attribute.Float64("gen_ai.request.temperature", *req.Temperature))
	}
	if req.TopP != nil {
		all = append(all, attribute.Float64("gen_ai.request.top_p", *req.TopP))
	}
	all = setInt(all, "gen_ai.request.max_tokens", req.MaxTokens)
	if req.Output != nil {
		all = append(all, attribute.String("gen_ai.output.type", "json"))
	}
	return all
}

// usage adds the tokens of an answer, or of several.
func usage(all []attribute.KeyValue, u llm.Usage) []attribute.KeyValue {
	all = setInt(all, "gen_ai.usage.input_tokens", u.Input)
	all = setInt(all, "gen_ai.usage.output_tokens", u.Output)
	all = setInt(all, "gen_ai.usage.cache_read.input_tokens", u.Cached)
	all = setInt(all, "gen_ai.usage.cache_creation.input_tokens", u.Written)
	return setInt(all, "gen_ai.usage.reasoning.output_tokens", u.Reasoning)
}

// Invoke begins the run of an agent in ctx. The function it returns is told how
// the run ended: failure names why there is no answer.
func (t *Telemetry) Invoke(ctx context.Context, a Invocation) (context.Context, func(u llm.Usage, failure string)) {
	ctx, op := t.begin(ctx, "invoke_agent "+a.Agent, trace.SpanKindInternal, t.agents)
	return ctx, func(u llm.Usage, failure string) {
		if op.span.IsRecording() {
			all := usage(nil, u)
			all = set(all, "gen_ai.conversation.id", a.Session)
			all = set(all, "gen_ai.agent.id", a.App+"/"+a.Agent)
			op.span.SetAttributes(all...)
		}
		measured := []attribute.KeyValue{attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", a.Agent)}
		op.end(ctx, failure, measured)
	}
}

// An Invocation is which agent is to run.
type Invocation struct {
	App, Agent, Session string
}
