package skills_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
)

// cached is a server whose tool x returns its call count, approved to be kept for a minute.
func cached(t *testing.T, change func(*intents.Pin)) (*bench, *site, executortest.Intent) {
	t.Helper()
	var calls atomic.Int64
	s := newSite(t, serverOf(tool{name: "x", handle: func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		return wire.NewToolResultText(fmt.Sprintf("answer %d", calls.Add(1))), nil
	}}))
	b := open(t, map[string]*site{"s": s})
	pins := b.pins(t, "pure")
	pins[0].CacheSeconds, pins[0].Since = 60, 7
	if change != nil {
		change(&pins[0])
	}
	return b, s, call(pins, "x", map[string]any{"n": 1})
}

// TestCache: an answer serves an equal call of the same user, under the same approval, with
// the same obligations, until it is too old or something was erased. Everything else is
// another call, counted at the server.
func TestCache(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pin    func(*intents.Pin)
		second func(*bench, *executortest.Intent)
		kept   bool
	}{
		{"an equal call", nil, nil, true},
		{"of another step", nil, func(_ *bench, o *executortest.Intent) {
			scope := *o.Ticket.Scope
			scope.Plan, scope.Task = "plan_2", "task_2"
			o.Ticket.Scope, o.Context.PlanID = &scope, "plan_2"
		}, true},
		{"just young enough", nil, func(b *bench, _ *executortest.Intent) { b.clock.Add(58) }, true},
		{"too old", nil, func(b *bench, _ *executortest.Intent) { b.clock.Add(61) }, false},
		{"of another user", nil, func(_ *bench, o *executortest.Intent) { o.Ticket.Actor.UserID = "bob" }, false},
		{"of another user, shared", func(p *intents.Pin) { p.Shared = true }, func(_ *bench, o *executortest.Intent) { o.Ticket.Actor.UserID = "bob" }, true},
		{"of another tenant, shared", func(p *intents.Pin) { p.Shared = true }, func(_ *bench, o *executortest.Intent) { o.Ticket.Actor.Tenant = "other" }, false},
		{"no longer shared", func(p *intents.Pin) { p.Shared = true }, func(_ *bench, o *executortest.Intent) { o.Ticket.Pins[0].Shared = false }, false},
		{"with another input", nil, func(_ *bench, o *executortest.Intent) {
			o.Args = map[string]any{"skill": "x", "input": map[string]any{"n": 2}}
		}, false},
		{"under a mask", nil, func(_ *bench, o *executortest.Intent) {
			o.Ticket.Obligations = []intents.Obligation{{Name: "mask", Value: []any{"/output"}}}
		}, false},
		{"after an erasure", nil, func(_ *bench, o *executortest.Intent) { o.Ticket.Erasures = 1 }, false},
		{"approved again", nil, func(_ *bench, o *executortest.Intent) { o.Ticket.Pins[0].Since = 9 }, false},
		{"approved for no time", nil, func(_ *bench, o *executortest.Intent) {
			o.Ticket.Pins[0].CacheSeconds, o.Ticket.Pins[0].Since = 0, 0
		}, false},
		{"of a skill that is not pure", func(p *intents.Pin) { p.Effect = "idempotent" }, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, s, first := cached(t, tt.pin)
			second := first
			second.Ticket.Pins = append([]intents.Pin{}, first.Ticket.Pins...)
			scope := *first.Ticket.Scope
			first.Ticket.Scope = &scope
			first.Position, second.Position = 41, 42
			origin := b.Must(t, first, nil)
			if string(origin.Result) != `{"output":"answer 1"}` || executortest.EventPayload(t, origin, "skill.cached") != nil {
				t.Fatalf("%s %v", origin.Result, origin.Events)
			}
			if tt.second != nil {
				tt.second(b, &second)
			}
			got := b.Must(t, second, nil)
			event := executortest.EventPayload(t, got, "skill.cached")
			if tt.kept {
				if s.calls.Load() != 1 || string(got.Result) != string(origin.Result) || len(got.Events) != 1 || event["position"] != 41.0 || event["skill_id"] != "x" {
					t.Errorf("%s %v after %d calls", got.Result, event, s.calls.Load())
				}
			} else if s.calls.Load() != 2 || event != nil || string(got.Result) == string(origin.Result) {
				t.Errorf("%s %v after %d calls", got.Result, event, s.calls.Load())
			}
		})
	}
}

// TestCacheRevoked: what is kept serves nobody for whom the skill is not approved any more.
func TestCacheRevoked(t *testing.T) {
	b, s, in := cached(t, nil)
	b.Must(t, in, nil)
	in.Ticket.Pins = nil
	if r := b.Do(t, in); r.Code != intents.PolicyDenied || s.calls.Load() != 1 {
		t.Errorf("%+v after %d calls", r, s.calls.Load())
	}
}

// TestCacheOneCall: equal calls that come at once are one at the server, and large answers
// are files of each one's own step. What fails is not kept.
func TestCacheOneCall(t *testing.T) {
	began, goOn := make(chan bool, 8), make(chan bool)
	var fail atomic.Bool
	s := newSite(t, serverOf(tool{name: "x", handle: func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		began <- true
		<-goOn
		if fail.Load() {
			return wire.NewToolResultError("no"), nil
		}
		return wire.NewToolResultText(strings.Repeat("row\n", 20_000)), nil
	}}))
	b := open(t, map[string]*site{"s": s})
	pins := b.pins(t, "pure")
	pins[0].CacheSeconds = 60
	intent := func(plan string) intents.Dispatch {
		in := call(pins, "x", nil)
		in.Context.PlanID = plan
		return b.Sign(t, b.Fill(in))
	}
	fail.Store(true)
	bad := intent("plan_0")
	go func() { <-began; goOn <- true }()
	if r := b.Send(t, bad); r.Code != intents.ExecutorFailed {
		t.Fatalf("%+v", r)
	}
	fail.Store(false)
	var all sync.WaitGroup
	for i := range 4 {
		plan := fmt.Sprintf("plan_%d", i+1)
		d := intent(plan)
		all.Go(func() {
			r := b.Send(t, d)
			var got catalog.SkillCallResult
			if err := json.Unmarshal(r.Result, &got); err != nil || got.Reference == nil {
				t.Errorf("%+v: %v", r, err)
				return
			}
			f, _, err := b.blobs.Open(t.Context(), storage.Scope{Tenant: "acme", Plan: plan, Revision: 1, Step: 1}, got.FileID)
			if err != nil {
				t.Error(err)
				return
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	<-began
	goOn <- true
	all.Wait()
	if s.calls.Load() != 2 {
		t.Errorf("%d calls", s.calls.Load())
	}
}

// TestCacheInvalidated: the actor's answers go by key, skill or run, are counted, and nobody
// else's go; what is asked for meanwhile is not kept.
func TestCacheInvalidated(t *testing.T) {
	b, s, in := cached(t, nil)
	as := func(user, tenant string, o executortest.Intent) executortest.Intent {
		scope := *in.Ticket.Scope // the bench fills it in
		o.Ticket.Scope = &scope
		o.Ticket.Actor.UserID, o.Ticket.Actor.Tenant = user, tenant
		return o
	}
	stats := func(user, tenant string) catalog.CacheStatsResult {
		return b.cache.Stats(intents.Principal{UserID: user, Tenant: tenant})
	}
	invalidate := func(user, tenant, scope, key string) int {
		var out catalog.CacheInvalidateResult
		b.Must(t, as(user, tenant, executortest.Intent{Type: "cache.invalidate", Args: catalog.CacheInvalidate{Scope: scope, Key: key}}), &out)
		return out.Removed
	}
	fill := func(n int, plan string) {
		o := as("ana", "acme", in)
		o.Args = map[string]any{"skill": "x", "input": map[string]any{"n": n}}
		o.Context.PlanID = plan
		b.Must(t, o, nil)
	}
	fill(1, "run_1")
	fill(2, "run_1")
	fill(3, "run_2")
	b.Must(t, as("bob", "acme", in), nil)
	b.Must(t, as("ana", "evil", in), nil)
	had := stats("ana", "acme")
	if had.Entries != 3 || had.SizeBytes != 3*int64(len("answer 1")) || len(had.Answers) != 3 || !strings.HasPrefix(had.Answers[0].Key, "x:sha256:") || had.Answers[0].Shared {
		t.Fatalf("%+v", had)
	}
	for _, tt := range []struct {
		user, tenant, scope, key string
		want                     int
	}{
		{"bob", "acme", "key", had.Answers[0].Key, 0},
		{"ana", "evil", "workflow", "run_1", 0},
		{"ana", "acme", "skill", "y", 0},
		{"ana", "acme", "skill", "run_1", 0},
		{"ana", "acme", "workflow", "run_1", 2},
		{"ana", "acme", "skill", "x", 1},
		{"bob", "acme", "workflow", stats("bob", "acme").Answers[0].Key, 1},
		{"bob", "acme", "skill", "x", 0},
	} {
		if got := invalidate(tt.user, tt.tenant, tt.scope, tt.key); got != tt.want {
			t.Errorf("%+v: %d went", tt, got)
		}
	}
	if stats("ana", "acme").Entries != 0 || stats("ana", "evil").Entries != 1 {
		t.Error("others' answers went, or ours stayed")
	}
	calls := s.calls.Load()
	fill(1, "run_1")
	if s.calls.Load() != calls+1 {
		t.Error("what was forgotten was answered")
	}
}

// TestCacheInvalidatedMeanwhile: an answer that was asked for before is not kept after.
func TestCacheInvalidatedMeanwhile(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	s := newSite(t, serverOf(tool{name: "x", handle: func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		if calls.Add(1) == 1 {
			close(asked)
			<-goOn
		}
		return wire.NewToolResultText("answer"), nil
	}}))
	b := open(t, map[string]*site{"s": s})
	pins := b.pins(t, "pure")
	pins[0].CacheSeconds, pins[0].Since = 60, 7
	in := b.Fill(call(pins, "x", map[string]any{"n": 1}))
	var first sync.WaitGroup
	first.Go(func() { b.Do(t, in) })
	<-asked
	b.Must(t, executortest.Intent{Type: "cache.invalidate", Args: catalog.CacheInvalidate{Scope: "skill", Key: "x"}}, nil)
	close(goOn)
	first.Wait()
	if b.Must(t, call(pins, "x", map[string]any{"n": 1}), nil); calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
}
