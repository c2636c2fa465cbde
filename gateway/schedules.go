package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/ratelimit"
)

// Permanent refusals of a scheduled time: for the schedule, until it is put again, or for that
// time alone.
var (
	forGood = []intents.Code{intents.RBACForbidden, intents.PolicyDenied, intents.MalformedArgs}
	forOnce = []intents.Code{intents.SessionBusy, intents.ConflictIdempotency}
)

// unfiredShares bound the recorded entries: of all, of a tenant's, and of a user's. A dropped
// entry is tried again, and refused again.
var unfiredShares = ratelimit.Shares{All: 10_000, Tenant: 2000, Key: 200}

// notFired is the reason: its time was refused, or waits for approval.
type notFired struct {
	due  time.Time
	put  int64        // the schedule
	code intents.Code // that refuses all its times; empty: this one alone
}

func nameOf(tenant, user, id string) string { return tenant + "/" + user + "/" + id }

// fireDue opens a plan for each schedule that is due, under a grant issued now. Several gateways
// may try: the router opens one plan for one time. A time that is refused, with the reason in the
// record, or that waits for approval, is not tried again by this process; nor are later times of
// a schedule that is permanently refused.
//
// A crash before the intent is accepted leaves the schedule due. After it the plan has no driver,
// and is dispatched like those from before a crash (resume.go).
func (g *Gateway) fireDue(ctx context.Context, reply json.RawMessage) {
	var due []catalog.Schedule
	_ = json.Unmarshal(reply, &due) // written by the router
	besideEachOther(due, func(s catalog.Schedule) {
		name := nameOf(s.Tenant, s.User, s.ID)
		if was, _ := g.unfired.Get(name); was.due.Equal(s.Next) || was.code != "" && was.put == s.Put {
			return
		}
		answer, err := g.fire(ctx, s, intents.Digest([]byte(name)))
		if err != nil && ctx.Err() == nil {
			g.cfg.Log.WarnContext(ctx, "schedule not fired", slog.String("tenant", s.Tenant), slog.String("user", s.User), slog.String("schedule", s.ID), slog.String("error", err.Error()))
		}
		why, known := notFired{due: s.Next, put: s.Put}, true
		switch {
		case err == nil && answer.Outcome == nil: // it waits for approval
		case err != nil && slices.Contains(forGood, problem.FromError(err).Code):
			why.code = problem.FromError(err).Code
		case err == nil || !slices.Contains(forOnce, problem.FromError(err).Code):
			known = false
		}
		if g.unfired.Remove(name); known {
			g.unfired.Put(name, s.Tenant, s.User, 1, why)
		}
	})
}

// fire signs the intent of one time's plan, as a turn of the schedule's own session, which is
// named after its digest. A user who has lost the API key has no roles, so the router refuses.
func (g *Gateway) fire(ctx context.Context, s catalog.Schedule, digest string) (*intents.Answer, error) {
	a := actor{tenant: s.Tenant, user: s.User, session: "sched_" + digest[7:23], keyID: intents.CallerOf(s.Client)}
	var err error
	if a.roles, err = g.rolesOf(ctx, a, s.Roles); err != nil && problem.FromError(err).Code != intents.RBACForbidden {
		return nil, err
	}
	at := intents.Context{TurnID: newID("turn"), PlanID: intents.NewTimedID(intents.KindPlan, g.cfg.Now())}
	grant, _, err := g.issueGrant(a, at.TurnID, "")
	if err != nil {
		return nil, err
	}
	args := catalog.PlanOpen{PlanID: at.PlanID, Task: scheduledTask(s), Agent: s.Agent, Schedule: &catalog.Firing{ID: s.ID, Due: s.Next}}
	if s.TimeZone != "" {
		args.Turn = &catalog.TurnContext{TimeZone: s.TimeZone}
	}
	return g.submit(ctx, a, intent{"plan.open", args, at, grant, intents.Digest([]byte(digest + "\n" + intents.FormatTime(s.Next)))})
}

// scheduledTask returns the request of a schedule. A request set by an agent is labelled wherever
// it is read and stored: the words are a model's, and not its user's.
func scheduledTask(s catalog.Schedule) string {
	if !s.ByAgent {
		return s.Input
	}
	return "[Reminder, put by an agent in its own words: carry it out as far as the user's wishes in the conversation go]\n" + s.Input
}

// listSchedules is GET /agent/schedules.
func (g *Gateway) listSchedules(c *gin.Context, a actor) error {
	out, err := read[catalog.ScheduleList](c.Request.Context(), g, a, readapi.Schedules, nil)
	for i, s := range out.Schedules {
		if was, _ := g.unfired.Get(nameOf(a.tenant, a.user, s.ID)); !s.Next.After(was.due) { // otherwise it was put again
			out.Schedules[i].Failed = was.code
		}
	}
	return respond(c, out, err)
}
