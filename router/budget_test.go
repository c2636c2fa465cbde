package router_test

import (
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// uses ends a task as failed, after it has used tokens.
func uses(t *routertest.Task, input, output int) {
	t.Helper()
	t.Want(t.Do(t.Intent("step.finish", catalog.StepFinish{
		TaskID: t.TaskID, Status: "failed", Reason: "no", Usage: []catalog.Usage{{Agent: "executor", Model: "test:a", Calls: 1, InputTokens: input, OutputTokens: output}},
	})), intents.OK)
}

// opens asks for a task of the first step of a plan's next revision.
func opens(p *routertest.Plan, revision int) *intents.Answer {
	p.Helper()
	if revision > 1 {
		p.Want(p.Plan(routertest.Steps(revision, "feed")), intents.OK)
	}
	return p.Do(p.StepIntent(p.NewTask(revision).StepArgs()))
}

// TestBudgets: once the tokens of a turn, of a user's day or of a tenant's day are used, no task
// begins under that budget. The refusal names the budget, its use, and when it is free again; on
// the next day it is.
func TestBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		budgets, reason string
		free            func(w *routertest.World) *intents.Answer // a task that may begin all the same
	}{
		"turn": {`{"tokens_per_turn":1000}`, "the token budget of this request is spent: 1000 of 1000. A new request begins anew", func(w *routertest.World) *intents.Answer {
			return opens(w.Begun("p2", "feed"), 1)
		}},
		"user": {`{"tokens_per_user_day":1000}`, "the token budget of this user and day is spent: 1000 of 1000. It is free again at 2026-11-21 00:00 UTC", func(w *routertest.World) *intents.Answer {
			p := w.NewPlan("p2")
			p.User = "ben"
			w.Want(p.Open(), intents.OK)
			w.Want(p.Claim(), intents.OK)
			w.Want(p.Plan(routertest.Steps(1, "feed")), intents.OK)
			return opens(p, 1)
		}},
		"day": {`{"tokens_per_day":1000}`, "the token budget of this tenant and day is spent: 1000 of 1000. It is free again at 2026-11-21 00:00 UTC", func(w *routertest.World) *intents.Answer {
			w.Clock.Move(24 * time.Hour)
			return opens(w.Begun("p2", "feed"), 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			w.Pin("feed", catalog.Pure)
			w.Data("budgets", c.budgets)
			p := w.Begun("p1", "feed")
			uses(p.Started(1), 700, 299)
			w.Want(p.Plan(routertest.Steps(2, "feed")), intents.OK)
			uses(p.Started(2), 0, 1) // one was left
			w = w.Restart()
			p.World = w
			a := w.Want(opens(p, 3), intents.RateLimited)
			if a.Reason != c.reason || a.Decision == nil || a.Decision.Verdict != intents.Deny || !strings.Contains(a.Hint, "budgets") {
				t.Errorf("%+v", a)
			}
			w.Want(c.free(w), intents.OK)
			w.Data("budgets", "null")
			w.Want(p.Do(p.StepIntent(p.NewTask(3).StepArgs())), intents.OK)
		})
	}
}

// TestBudgetOutsideOfPlans: tokens used outside of all plans count for the day of their actor and
// tenant.
func TestBudgetOutsideOfPlans(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	w.Data("budgets", `{"tokens_per_user_day":1000,"tokens_per_turn":1}`)
	report := func(input int) {
		w.OK(routertest.Intent{By: w.Manager, Type: "usage.report", Args: catalog.UsageReport{Usage: []catalog.Usage{{Agent: "producer", Model: "test:a", Calls: 1, InputTokens: input}}}})
	}
	report(999)
	w.Must(w.Dir.CheckBudget("default", "ana", w.Clock.Now()))
	report(1)
	w = w.Restart()
	if err := w.Dir.CheckBudget("default", "ana", w.Clock.Now()); err == nil || !strings.Contains(err.Error(), "of this user and day is spent: 1000 of 1000") {
		t.Errorf("%v", err)
	}
	w.Must(w.Dir.CheckBudget("default", "ben", w.Clock.Now()))
	p := w.Begun("p1", "feed")
	w.Want(opens(p, 1), intents.RateLimited)
	w.Clock.Move(24 * time.Hour)
	w.Must(w.Dir.CheckBudget("default", "ana", w.Clock.Now()))
}

// TestBudgetOfALostTask: a task that ends without a report is charged for one request more than it
// is known to have made.
func TestBudgetOfALostTask(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	w.Data("budgets", `{"tokens_per_turn":40000}`)
	p := w.Begun("p1", "feed")
	lost := p.Started(1)
	call := lost.CallIntent("feed", `{}`)
	call.Ctx.Call = "2.0"
	w.Want(w.Do(call), intents.OK)
	w.Want(p.Claim(), intents.OK)                                   // 2 + 1 requests, at 10,000 tokens
	w.Want(p.Do(p.StepIntent(p.NewTask(1).StepArgs())), intents.OK) // 30,000
	w.Want(p.Claim(), intents.OK)                                   // one more
	a := w.Want(p.Do(p.StepIntent(p.NewTask(1).StepArgs())), intents.RateLimited)
	if !strings.Contains(a.Reason, "40000 of 40000") {
		t.Errorf("%+v", a)
	}
}
