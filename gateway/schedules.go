package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// Refusals of a time of a schedule that stand: for the schedule, until it is put again, or
// for that time alone.
var (
	forGood = []intents.Code{intents.RBACForbidden, intents.PolicyDenied, intents.MalformedArgs}
	forOnce = []intents.Code{intents.SessionBusy, intents.ConflictIdempotency}
)

// unfired are schedules that open no plan. Safe for concurrent use.
type unfired struct {
	mu sync.Mutex
	by map[string]notFired // by "tenant/user/id"
}

// notFired is why: its time was refused, or waits for people.
type notFired struct {
	due  time.Time
	put  int64        // the schedule
	code intents.Code // that refuses all its times; empty: this one alone
}

func (u *unfired) of(name string) notFired {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.by[name]
}

func (u *unfired) set(name string, why *notFired) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if delete(u.by, name); why != nil {
		u.by[name] = *why
	}
}

func nameOf(tenant, user, id string) string { return tenant + "/" + user + "/" + id }

// fireDue opens a plan for each schedule that is due, under a grant of now. Several gateways
// may try: the router opens one plan for one time. A time that is refused, so that the
// record says why, or that waits for people, is not tried again by this process; nor are
// later times of a schedule that is refused for good.
//
// A crash before the order is accepted leaves the schedule due. After it the plan is one
// that nobody drives, which is handed out like those of before a crash (resume.go).
func (g *Gateway) fireDue(ctx context.Context, reply json.RawMessage) {
	var due []catalog.Schedule
	_ = json.Unmarshal(reply, &due) // the router's own
	besideEachOther(due, func(s catalog.Schedule) {
		name := nameOf(s.Tenant, s.User, s.ID)
		if was := g.unfired.of(name); was.due.Equal(s.Next) || was.code != "" && was.put == s.Put {
			return
		}
		answer, err := g.fire(ctx, s, intents.Digest([]byte(name)))
		if err != nil && ctx.Err() == nil {
			g.cfg.Log.WarnContext(ctx, "schedule not fired", slog.String("tenant", s.Tenant), slog.String("user", s.User), slog.String("schedule", s.ID), slog.String("error", err.Error()))
		}
		why := &notFired{due: s.Next, put: s.Put}
		switch {
		case err == nil && answer.Outcome == nil: // it waits for people
		case err != nil && slices.Contains(forGood, problem.Of(err).Code):
			why.code = problem.Of(err).Code
		case err == nil || !slices.Contains(forOnce, problem.Of(err).Code):
			why = nil
		}
		g.unfired.set(name, why)
	})
}

// fire orders the plan of one time, as a turn of the schedule's own session, which is named
// after its digest. Who has lost the API key is left without roles, for the router to refuse.
func (g *Gateway) fire(ctx context.Context, s catalog.Schedule, digest string) (*intents.Answer, error) {
	a := actor{tenant: s.Tenant, user: s.User, session: "sched_" + digest[7:23], keyID: intents.KeyOfClient(s.Client)}
	var err error
	if a.roles, err = g.rolesOf(ctx, a, s.Roles); err != nil && problem.Of(err).Code != intents.RBACForbidden {
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
	return g.submit(ctx, a, order{"plan.open", args, at, grant, intents.Digest([]byte(digest + "\n" + intents.FormatTime(s.Next)))})
}

// scheduledTask is what a schedule asks for. What an agent has put says so wherever the request is read
// and stored: the words are a model's, and not its user's.
func scheduledTask(s catalog.Schedule) string {
	if !s.ByAgent {
		return s.Input
	}
	return "[Reminder, put by an agent in its own words: carry it out as far as the user's wishes in the conversation go]\n" + s.Input
}

// schedules are those of a user.
type schedules struct {
	Schedules []catalog.Schedule `json:"schedules"`
}

// schedules orders a type for the user of a request, whose body is its arguments.
func (g *Gateway) schedules(typ string) func(*gin.Context, caller) error {
	return func(c *gin.Context, who caller) error {
		args := any(struct{}{})
		switch c.Request.Method {
		case http.MethodPost:
			body, err := readJSON(c)
			if err != nil {
				return err
			}
			args = json.RawMessage(body)
		case http.MethodDelete:
			args = catalog.ScheduleDelete{ID: c.Param("id")}
		}
		a, err := g.identify(c.Request.Context(), who, claim{})
		if err != nil {
			return err
		}
		if c.Request.Method == http.MethodGet {
			out, err := request[schedules](c.Request.Context(), g, a, typ, args, "")
			for i, s := range out.Schedules {
				if was := g.unfired.of(nameOf(a.tenant, a.user, s.ID)); !s.Next.After(was.due) { // else it was put again
					out.Schedules[i].Failed = was.code
				}
			}
			return respond(c, out, err)
		}
		out, err := request[json.RawMessage](c.Request.Context(), g, a, typ, args, "")
		return respond(c, out, err)
	}
}
