package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/problem"
)

// How long a schedule that could not be fired is left alone: twice as long each time.
const (
	firstWait = time.Minute
	maxWait   = 24 * time.Hour
)

// unfired is a schedule that could not be fired.
type unfired struct {
	until time.Time
	wait  time.Duration
}

// fireDue opens a plan for each schedule that is due, under a grant of now. Several gateways
// may try: the router opens one plan for one time.
//
// A crash before the order is accepted leaves the schedule due. After it the plan is one
// that nobody drives, which is handed out like those of before a crash (resume.go).
func (g *Gateway) fireDue(ctx context.Context, due []bus.DueSchedule) {
	for _, s := range due {
		name, now := s.Tenant+"/"+s.UserID+"/"+s.ID, g.cfg.Now()
		before := g.unfired[name]
		if now.Before(before.until) {
			continue
		}
		held, err := g.fire(ctx, s)
		if err == nil && !held {
			delete(g.unfired, name)
			continue
		}
		wait := min(max(firstWait, 2*before.wait), maxWait)
		g.unfired[name] = unfired{now.Add(wait), wait}
		if err != nil && ctx.Err() == nil {
			g.cfg.Log.WarnContext(ctx, "schedule not fired", slog.String("tenant", s.Tenant), slog.String("user", s.UserID), slog.String("schedule", s.ID), slog.String("error", err.Error()))
		}
	}
}

// fire orders the plan of one time, as a turn of the schedule's own session: it waits while
// the turn before is open. Who has lost all roles, or the API key, is refused by the
// router, so that the record says it. held: people must approve it first.
func (g *Gateway) fire(ctx context.Context, s bus.DueSchedule) (held bool, err error) {
	name := intents.Digest([]byte(s.Tenant + "/" + s.UserID + "/" + s.ID))
	a := actor{tenant: s.Tenant, user: s.UserID, session: "sched_" + name[7:23], keyID: intents.KeyOfClient(s.Client)}
	a.roles, err = g.rolesOf(ctx, a, s.Roles)
	switch {
	case err != nil && problem.Of(err).Code != intents.RBACForbidden:
		return false, err
	case err != nil:
		a.roles = []string{}
	}
	turn, plan := newID("turn"), intents.NewTimedID(intents.KindPlan, g.cfg.Now())
	grant, _, err := g.issueGrant(a, turn, "")
	if err != nil {
		return false, err
	}
	args := catalog.PlanOpen{PlanID: plan, Task: s.Input, Agent: s.Agent, Schedule: &catalog.Firing{ID: s.ID, Due: s.Due}}
	if s.TimeZone != "" {
		args.Turn = &catalog.TurnContext{TimeZone: s.TimeZone}
	}
	answer, err := g.submit(ctx, a, order{
		typ: "plan.open", args: args, at: intents.Context{TurnID: turn, PlanID: plan}, grant: grant,
		key: intents.Digest([]byte(name + "\n" + intents.FormatTime(s.Due))),
	})
	return err == nil && answer.Outcome == nil, err
}

// putSchedule is POST /agent/schedules: the arguments of schedule.put.
func (g *Gateway) putSchedule(c *gin.Context, who caller) error {
	var body catalog.SchedulePut
	if err := readBody(c, &body); err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, claim{})
	if err != nil {
		return err
	}
	out, err := request[catalog.SchedulePutResult](c.Request.Context(), g, a, "schedule.put", body, "")
	return respond(c, out, err)
}

// schedulesReply is the answer to GET /agent/schedules.
type schedulesReply struct {
	Schedules []catalog.Schedule `json:"schedules"` // the next one first
}

func (g *Gateway) listSchedules(c *gin.Context, who caller) error {
	ctx := c.Request.Context()
	a, err := g.identify(ctx, who, claim{})
	if err != nil {
		return err
	}
	turn := newID("turn")
	grant, _, err := g.issueGrant(a, turn, "")
	if err != nil {
		return err
	}
	answer, err := g.submit(ctx, a, order{typ: "schedule.list", args: catalog.ScheduleList{}, at: intents.Context{TurnID: turn}, grant: grant})
	if err != nil {
		return err
	}
	told := schedulesReply{}
	err = json.Unmarshal(answer.Told, &told)
	told.Schedules = append([]catalog.Schedule{}, told.Schedules...)
	return respond(c, told, err)
}

// deleteSchedule is DELETE /agent/schedules/{id}.
func (g *Gateway) deleteSchedule(c *gin.Context, who caller) error {
	a, err := g.identify(c.Request.Context(), who, claim{})
	if err != nil {
		return err
	}
	out, err := request[catalog.Accepted](c.Request.Context(), g, a, "schedule.delete", catalog.ScheduleDelete{ID: c.Param("id")}, "")
	return respond(c, out, err)
}
