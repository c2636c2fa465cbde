package agentic

import (
	"context"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// costly fails, after its server has counted tokens.
type costly struct{}

func (costly) Name() string { return "test:costly" }

func (costly) Respond(context.Context, model.Request, func(model.Event)) (*model.Response, error) {
	return &model.Response{Model: "test:costly", Usage: model.Usage{InputTokens: 500, CachedTokens: 400, OutputTokens: 3, Estimated: true}}, &model.Error{Reason: "busy", Retryable: true}
}

// TestUsageOfFallback: tokens are attributed to the model that used them, even if another one
// answered.
func TestUsageOfFallback(t *testing.T) {
	def := agents.Builtin(agents.Composer)
	l := &loop{agent: def, model: model.Fallback(costly{}, says(map[string][]any{"": {"Hello."}}))}
	for range 2 {
		if _, err := l.request(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []catalog.Usage{
		{Agent: def.Name, Model: "test:costly", Calls: 2, InputTokens: 1000, CachedTokens: 800, OutputTokens: 6, Estimated: true},
		{Agent: def.Name, Model: "test:script", Calls: 2, InputTokens: 20, OutputTokens: 2},
	}
	if d := gocmp.Diff(want, l.used, ignoreLatency); d != "" {
		t.Error(d)
	}
}
