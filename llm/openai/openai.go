// Package openai speaks to models by the protocols of OpenAI, which most providers offer: chat completions and responses.
package openai

import (
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
)

// A Model is one model of a provider.
type Model struct {
	*wire.Client
	Responses bool   // the responses API in place of chat completions
	Summary   string // which summaries of reasoning the responses API is asked for, such as auto; "": none
	Quirks
	Extra map[string]json.RawMessage // further members of every request
}

// Quirks are what providers do differently. Zero is what most of them do.
type Quirks struct {
	OpenAI        bool // OpenAI's own: reasoning models take other settings, and prompts are kept by session
	NoUsageOption bool // stream_options is an error; usage comes unasked
	JSONOnly      bool // answers cannot be held to a schema, only to JSON
	ShortIDs      bool // ids of calls have nine letters and digits
	CacheMarks    bool // what is to be kept is marked, where the model is one of Anthropic
	Whole         bool // answers are not streamed
}

// reasoners are the models of OpenAI that reason: they take other settings.
var reasoners = regexp.MustCompile(`^(o[1-9]|gpt-([5-9]|1\d)|codex)`)

// Reasons reports whether a model of OpenAI is one that reasons.
func Reasons(model string) bool {
	short := model[strings.LastIndexByte(model, '/')+1:]
	return reasoners.MatchString(short) && !strings.Contains(short, "-chat")
}

// mayReason reports whether a model can be told how long to think: OpenAI's
// others refuse that.
func (m *Model) mayReason() bool { return !m.OpenAI || Reasons(m.Client.Model) }

// Generate continues a conversation.
func (m *Model) Generate(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	if m.Responses {
		return m.Stream(ctx, "/responses", m.responsesBody(req), wire.SSE, func(s wire.Sink) wire.Decoder {
			return &responses{sink: s, from: m.From()}
		})
	}
	return m.Stream(ctx, "/chat/completions", m.chatBody(req), wire.SSE, func(s wire.Sink) wire.Decoder {
		return &chat{sink: s, from: m.From()}
	})
}

// object is a JSON object that is being written.
type object map[string]any

func (o object) extend(extra map[string]json.RawMessage) object {
	for k, v := range extra {
		o[k] = v
	}
	return o
}

// sampling adds the settings that reasoning models of OpenAI refuse.
func (m *Model) sampling(o object, s llm.Settings) {
	if m.OpenAI && Reasons(m.Client.Model) {
		return
	}
	if s.Temperature != nil {
		o["temperature"] = *s.Temperature
	}
	if s.TopP != nil {
		o["top_p"] = *s.TopP
	}
	if stops := s.Stops(); len(stops) > 0 && !m.Responses {
		o["stop"] = stops
	}
}

// named returns how an API writes a choice of tools.
func named(c llm.Choice, one func(name string) any) any {
	if c == llm.None || c == llm.Required {
		return string(c)
	}
	return one(string(c))
}
