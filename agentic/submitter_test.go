package agentic

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// claim submits a plan.claim.
func claim(t *testing.T, s *Submitter, turn Turn, epoch int) (*intents.Answer, error) {
	t.Helper()
	return s.Submit(t.Context(), turn, Place{}, "plan.claim", catalog.PlanClaim{PlanID: turn.PlanID, Epoch: epoch, Driver: "d"}, nil)
}

func manager(c *core) *Submitter {
	cfg := c.config(natsserver.Manager, nil)
	return cfg.submitter(*cfg.Key)
}

// An intent of an unknown type is not signed.
func TestSubmitUnknownType(t *testing.T) {
	if _, err := (&Submitter{}).Submit(t.Context(), Turn{}, Place{}, "no.such", struct{}{}, nil); err == nil {
		t.Error("an unknown type is signed")
	}
}

func TestSubmit(t *testing.T) {
	c := newCore(t)
	s := manager(c)
	c.on("plan.claim", done(catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanPlanning}))
	var got catalog.PlanView
	a, err := s.Submit(t.Context(), c.turn(), Place{}, "plan.claim", catalog.PlanClaim{PlanID: "plan_1", Epoch: 1, Driver: "d"}, &got)
	if err != nil || got.Status != catalog.PlanPlanning {
		t.Fatalf("%+v, error %v", got, err)
	}
	o := c.allPlaced()[0]
	if o.ID != a.IntentID || o.Role != intents.RoleManager || o.Grant != "first" || o.Place != (Place{}) {
		t.Errorf("%+v", o)
	}
	if _, err := claim(t, s, c.turn(), 1); err != nil {
		t.Fatal(err)
	}
	if both := c.allPlaced(); both[0].Key != both[1].Key {
		t.Error("the same intent has two keys")
	}
	c.on("plan.claim", done("no plan"))
	if _, err := s.Submit(t.Context(), c.turn(), Place{}, "plan.claim", catalog.PlanClaim{PlanID: "plan_1", Epoch: 1, Driver: "d"}, &got); err == nil {
		t.Error("a result of another type is taken")
	}
}

// TestIntentRepeated: only an intent without effect is sent again, under the same key.
func TestIntentRepeated(t *testing.T) {
	ok := done(struct{}{})
	tests := []struct {
		name   string
		answer func(placed) *intents.Answer
		times  int
		code   intents.Code
		wait   time.Duration
	}{
		{"done", ok, 1, intents.OK, 0},
		{"retryable, then done", inTurn(outcome(intents.Abandoned, intents.Failed, true), ok), 2, intents.OK, 0},
		{"retryable for good", outcome(intents.DispatchUnavailable, intents.Failed, true), signAttempts, intents.DispatchUnavailable, 0},
		{"overloaded, then done", inTurn(refuse(intents.Overloaded, "later"), ok), 2, intents.OK, 0},
		{"in flight, then done", inTurn(refuse(intents.InFlight, "wait"), refuse(intents.InFlight, "wait"), ok), 3, intents.OK, 0},
		{"failed for good", outcome(intents.ExecutorFailed, intents.Failed, false), 1, intents.ExecutorFailed, 0},
		{"indeterminate", outcome(intents.Indeterminate, intents.StatusIndetermined, false), 1, intents.Indeterminate, 0},
		{"indeterminate, said to be retryable", outcome(intents.Indeterminate, intents.StatusIndetermined, true), 1, intents.Indeterminate, 0},
		{"denied", refuse(intents.PolicyDenied, "no"), 1, intents.PolicyDenied, 0},
		{"not yet valid", refuse(intents.NotYetValid, "no"), 1, intents.NotYetValid, 0},
		{"rate limited for a while, then done", inTurn(retryIn(intents.RateLimited, 5), ok), 2, intents.OK, 5 * time.Second},
		{"rate limited for long", retryIn(intents.RateLimited, 900), 1, intents.RateLimited, 0},
		{"a budget is spent", refuse(intents.RateLimited, "spent"), 1, intents.RateLimited, 0},
		{"full for a minute", retryIn(intents.Overloaded, 60), 1, intents.Overloaded, 0},
		{"a fault, then done", inTurn(refuse(intents.Internal, "?"), ok), 2, intents.OK, 0},
		{"held", refuse(intents.ApprovalRequired, "ask"), 1, intents.ApprovalRequired, 0},
	}
	c := newCore(t)
	s := manager(c)
	var waits []time.Duration
	s.after = func(d time.Duration) <-chan time.Time {
		if d == bus.AnswerTime {
			return nil // now it is answered
		}
		waits = append(waits, d)
		return time.After(0)
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(c.allPlaced())
			waits = nil
			c.on("plan.claim", tt.answer)
			a, err := claim(t, s, c.turn(), i+1)
			var refused *IntentError
			if a == nil || a.Code != tt.code || (tt.code == intents.OK) != (err == nil) || err != nil && (!errors.As(err, &refused) || refused.Type != "plan.claim") {
				t.Errorf("answer %+v, error %v", a, err)
			}
			sent := c.allPlaced()[before:]
			if len(sent) != tt.times {
				t.Fatalf("sent %d times, not %d", len(sent), tt.times)
			}
			for _, o := range sent[1:] {
				if o.Key != sent[0].Key {
					t.Error("sent again under another key")
				}
			}
			if tt.wait != 0 && !slices.Equal(waits, []time.Duration{tt.wait}) {
				t.Errorf("waited %v", waits)
			}
		})
	}
}

// retryIn refuses an intent and says when it may be sent again.
func retryIn(code intents.Code, seconds int) func(placed) *intents.Answer {
	return func(p placed) *intents.Answer {
		a := refuse(code, "not now")(p)
		a.RetryAfter = seconds
		return a
	}
}

// TestRefresh: a fresh grant applies from then on, also to an intent that is sent again, and
// whatever the turn says.
func TestRefresh(t *testing.T) {
	c := newCore(t)
	s := manager(c)
	fresh := c.grant("second")
	c.on("plan.claim", inTurn(func(placed) *intents.Answer {
		s.Refresh(fresh)
		return &intents.Answer{Code: intents.Overloaded}
	}, done(struct{}{})))
	if _, err := claim(t, s, c.turn(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(t, s, c.turn(), 2); err != nil {
		t.Fatal(err)
	}
	var grants []string
	for _, o := range c.allPlaced() {
		grants = append(grants, o.Grant)
	}
	if d := cmp.Diff([]string{"first", "second", "second"}, grants); d != "" {
		t.Errorf("grants (-want +got):\n%s", d)
	}
}

// TestIntentWithoutExecutor: without a router an intent fails, and the error names it.
func TestIntentWithoutExecutor(t *testing.T) {
	s, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c := newCore(t)
	conn, err := s.Connect(t.Context(), natsserver.Manager)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	submitter := manager(c)
	submitter.bus = conn
	submitter.after = func(time.Duration) <-chan time.Time { return time.After(0) }
	if _, err := claim(t, submitter, c.turn(), 1); !errors.Is(err, bus.ErrNoResponders) || !strings.HasPrefix(err.Error(), "plan.claim: ") {
		t.Errorf("error = %v", err)
	}
}
