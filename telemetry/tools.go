package telemetry

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

const (
	maxName    = 128       // of a tool that there is not
	maxContent = 128 << 10 // of arguments, and of a result
)

// Stage returns the stage that tells of every call, refusals included. It
// should be the first: what it measures is what the caller waits for, and what
// it tells of results is what the caller sees. Of arguments it tells, if at
// all, what args returns.
func (t *Telemetry) Stage(args func(*tool.Call) json.RawMessage) pipeline.Stage {
	return pipeline.Stage{
		Name: "telemetry", Doc: "tell the operator's collector of every call",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				ctx, op := t.begin(ctx, "execute_tool", trace.SpanKindInternal, t.tools)
				res, err := next(ctx, c)
				if op.span.IsRecording() {
					op.span.SetAttributes(about(c)...)
					if t.o.Content {
						op.span.SetAttributes(content(args(c), res)...)
					}
				}
				if c.Trail.Money != "" && c.Tool != nil {
					t.paid(ctx, c.Tool.Name, c.Trail.Money)
				}
				executed(ctx, &op, c, res, err)
				return res, err
			}
		},
	}
}

// executed ends the span of a call. Spans and metrics are named by tools that
// there are; what a caller made up is only an attribute.
func executed(ctx context.Context, op *operation, c *tool.Call, res *tool.Result, err error) {
	measured := []attribute.KeyValue{attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.type", "function")}
	if c.Tool != nil {
		op.span.SetName("execute_tool " + c.Tool.Name)
		measured = append(measured, attribute.String("gen_ai.tool.name", c.Tool.Name))
	}
	failure := ""
	switch {
	case err != nil:
		failure = string(tool.AsError(err).Code)
	case res == nil:
		failure = string(tool.CodeRuntime)
	case res.Err != nil:
		failure = string(res.Err.Code)
	}
	op.end(ctx, failure, measured)
}

// about is what is told of a call in its span alone.
func about(c *tool.Call) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("gen_ai.tool.call.id", c.ID), attribute.String("helve.decision", c.Trail.Decision.String())}
	if c.Tool == nil {
		all = append(all, attribute.String("gen_ai.tool.name", clip(c.Name, maxName)))
	} else {
		all = set(all, "gen_ai.tool.description", c.Tool.Summary())
	}
	all = set(all, "helve.stage", c.Trail.Stage)
	all = set(all, "helve.caller", string(c.From.Kind))
	all = set(all, "helve.app.id", c.From.App)
	all = set(all, "gen_ai.conversation.id", c.From.Session)
	return set(all, "gen_ai.agent.name", clip(c.From.Agent, maxName))
}

// content is what was said to a tool, and what it answered.
func content(args json.RawMessage, res *tool.Result) []attribute.KeyValue {
	all := set(nil, "gen_ai.tool.call.arguments", clip(string(args), maxContent))
	if res != nil && res.Err == nil {
		all = set(all, "gen_ai.tool.call.result", clip(res.JoinText(), maxContent))
	}
	return all
}
