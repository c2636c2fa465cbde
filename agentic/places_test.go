package agentic

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
)

// filled takes all places that a tenant's key can have at once.
func filled(p *ratelimit.Places, tenant, key string) (leave []func()) {
	for {
		l, ok := p.Take(tenant, key)
		if !ok {
			return leave
		}
		leave = append(leave, l)
	}
}

// grantOf issues a grant for a tenant by an API key.
func (c *core) grantOf(tenant, key string) string {
	c.t.Helper()
	token, err := intents.IssueGrant(c.signers[intents.RoleGateway], intents.Grant{
		Issuer: origin, Audience: origin, Subject: "ana", Tenant: tenant, Roles: []string{"user"}, Session: "s", Turn: "t",
		Act: intents.Act{Client: intents.ClientOf(key), AMR: []string{"api_key"}}, IssuedAt: 1, Expires: 2, ID: key,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return token
}

// TestRunsHaveShares: a role runs a limited number of plans; those of one key and one tenant
// leave some places to another key and to other tenants.
func TestRunsHaveShares(t *testing.T) {
	c := newCore(t)
	ctx, end := context.WithCancel(t.Context())
	d := newDispatch(c.config("manager", nil), "manager", func(*Run) strategy {
		<-ctx.Done()
		return nil
	})
	running := 0
	for _, of := range [][2]string{{"a", "one"}, {"a", "two"}, {"b", "three"}, {"c", "four"}} {
		n, h := 0, bus.PlanDispatch{TurnRef: bus.TurnRef{Tenant: of[0], Grant: c.grantOf(of[0], of[1])}}
		for ; ; n++ {
			if r := d.accept(ctx, h); !r.Accepted {
				if r.Code != string(intents.Overloaded) {
					t.Errorf("%+v", r)
				}
				break
			}
		}
		if n == 0 {
			t.Errorf("no plan of tenant %s, key %s is driven", of[0], of[1])
		}
		running += n
	}
	if running > maxRuns {
		t.Errorf("%d plans are driven", running)
	}
	end()
	d.runs.Wait()
}

// unable is a model that never answers, and counts requests.
type unable struct{ calls *atomic.Int32 }

func (unable) Name() string { return "test:unable" }

func (m unable) Respond(context.Context, model.Request, func(model.Event)) (*model.Response, error) {
	m.calls.Add(1)
	return nil, errors.New("it is unable")
}

// TestTurnsHaveShares: when one tenant uses all its places for steps, plans and clients' calls,
// and more wait, those of another tenant are served.
func TestTurnsHaveShares(t *testing.T) {
	c := newCore(t)
	working(c)
	m := unable{new(atomic.Int32)}
	w, p := tasks(c, m), NewPlanner(c.config("planner", m))
	for _, places := range []*ratelimit.Places{w.steps, w.calls, p.places} {
		filled(places, "greedy", "one")
		filled(places, "greedy", "two")
		go func() { _, _ = places.Wait(t.Context(), "greedy", "one", 1) }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	turn := c.turn()
	for i, work := range []func(){
		func() { w.run(ctx, opened(c, w, time.Now().Add(time.Minute))) }, //nolint:contextcheck // the world has one
		func() { p.plan(ctx, planRequest{Turn: turn, Task: "How many?"}, func(progress) {}) },
		func() { p.produce(ctx, bus.ProduceRequest{TurnRef: turn.TurnRef}) },
	} {
		if work(); int(m.calls.Load()) <= i {
			t.Errorf("%d: the model was not asked", i)
		}
	}
	opened(c, w, time.Now().Add(time.Minute))
	call := bus.ClientCall{TurnRef: turn.TurnRef, TaskID: "task_1", Type: "skill.call", Request: "1"}
	if got := w.client(ctx, call); got.Answer == nil {
		t.Errorf("a call of a client: %+v", got)
	}
}
