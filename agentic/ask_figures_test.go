package agentic

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestDispatchOverhead: the overhead of an ask is the time spent neither in the asked agent's
// model nor in its calls: here the intents that begin and end it.
func TestDispatchOverhead(t *testing.T) {
	const begin, end, model1, skill, model2 = 7 * time.Millisecond, 5 * time.Millisecond, 900 * time.Millisecond, 4 * time.Second, 600 * time.Millisecond
	began := time.Now()
	var passed atomic.Int64
	takes := func(d time.Duration) { passed.Add(int64(d)) }
	c := newCore(t)
	c.now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	asking(c, hub, others)
	for typ, d := range map[string]time.Duration{"agent.ask": begin, "step.finish": end, "skill.call": skill} {
		answer := c.reply[typ]
		if answer == nil {
			answer = done(catalog.SkillCallResult{Output: json.RawMessage(`{"offers":3}`)})
		}
		c.on(typ, func(p placed) *intents.Answer {
			if typ != "step.finish" || p.Place.Ask != "" {
				takes(d)
			}
			return answer(p)
		})
	}
	m := says(map[string][]any{
		"hub": {[]model.Call{ask("shop", "Offers?")}, "Three."},
		"shop": {
			func(context.Context) any { takes(model1); return []model.Call{call("crm_list", struct{}{})} },
			func(context.Context) any { takes(model2); return "Three offers." },
		},
	})
	var took, busy time.Duration
	managedBy(c, m, func(_ string, all, working time.Duration, failure string) {
		if took, busy = all, working; failure != "" {
			t.Errorf("shop: %s", failure)
		}
	})
	if busy != model1+skill+model2 || took-busy != begin+end {
		t.Errorf("it took %s, of which %s is no overhead; want an overhead of %s", took, busy, begin+end)
	}
	if slowest := skill; took-busy >= slowest {
		t.Errorf("the overhead %s is no less than the slowest skill, %s", took-busy, slowest)
	}
}

// TestRoutingEvent: a turn has one event with the agents asked, the number requested, the effect
// of the cap and the result of each, without any text of theirs.
func TestRoutingEvent(t *testing.T) {
	sent := tracetest.NewSpanRecorder()
	c := newCore(t)
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSpanProcessor(sent)))
	defer otel.SetTracerProvider(before)
	asking(c, hub+"limits: {max_fan_out: 2}\n", others)
	played(c, says(map[string][]any{
		"hub":  {[]model.Call{ask("shop", "1"), ask("rewards", "2"), ask("support", "3")}, "Done."},
		"shop": {"s"}, "rewards": {&model.Error{Reason: "Traceback: boom"}},
	}))
	var said []map[string]any
	deadline := time.After(patience)
	for len(said) == 0 {
		for _, s := range sent.Ended() {
			for _, e := range s.Events() {
				at := map[string]any{"event": e.Name, "span": s.Name()}
				for _, a := range e.Attributes {
					at[string(a.Key)] = a.Value.AsInterface()
				}
				said = append(said, at)
			}
		}
		select {
		case <-deadline:
			t.Fatal("no event")
		case <-time.After(time.Millisecond):
		}
	}
	want := []map[string]any{{
		"event": "agent.routing", "span": "turn", "gen_ai.agent.name": "hub", "writ.intent_count": int64(3), "writ.cap": "over",
		"writ.asked": []string{"shop", "rewards"}, "writ.outcomes": []string{"success", "failure"},
	}}
	if d := gocmp.Diff(want, said); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
