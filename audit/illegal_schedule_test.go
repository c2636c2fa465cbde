package audit_test

import (
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// scheduled begins a log with two schedules whose time has come: of an agent each hour, and
// of a planner once, half an hour ago.
func (d *dishonest) scheduled() {
	d.Helper()
	d.PushAgents(1, map[string]string{"shop": shopAgent})
	d.Want(d.Do(d.putting(hourly)), intents.OK)
	d.Want(d.Do(d.putting(oneTime)), intents.OK)
	d.Clock.Move(time.Hour)
}

var (
	hourly    = catalog.SchedulePut{ID: "hourly", Agent: "shop", Input: "Sell.", Cron: "0 * * * *"}
	oneTime   = catalog.SchedulePut{ID: "once", Input: "Call.", At: routertest.Began.Add(30 * time.Minute).Format(time.RFC3339)}
	onTheHour = routertest.Began.Add(time.Hour)
)

func (d *dishonest) putting(a catalog.SchedulePut) routertest.Intent {
	return routertest.Intent{By: d.Gateway, Type: "schedule.put", Args: a}
}

// puts appends a schedule as accepted that is due some time after now.
func (d *dishonest) puts(a catalog.SchedulePut, after time.Duration) int64 {
	d.Helper()
	a.Input += " Again." // else it is the intent of the scene
	return d.accepted(d.putting(a), d.next(after))
}

// next sets the next time of a schedule in the inputs of an intent.
func (d *dishonest) next(after time.Duration) func(a *appended) {
	return func(a *appended) { a.inputs.Next = intents.FormatTime(d.Clock.Now().Add(after)) }
}

// fires appends a plan for a time of a schedule as accepted.
func (d *dishonest) fires(plan string, s catalog.SchedulePut, due time.Time, changes ...func(a *appended)) int64 {
	d.Helper()
	o := d.NewPlan(plan).OpenIntent()
	o.Args = catalog.PlanOpen{PlanID: d.NewPlan(plan).ID, Task: s.Input, Agent: s.Agent, Schedule: &catalog.Firing{ID: s.ID, Due: due}}
	return d.accepted(o, changes...)
}

const (
	timeFired = "plan.open: its schedule's time has come, and was in no plan before"
	nextTime  = "plan.open: facts.next is to come, of a schedule with cron alone"
)

var scheduleMisdeeds = []misdeed{
	{"schedule-of-the-past", "scheduled", "schedule.put: facts.next is to come", "no time to come", func(d *dishonest) int64 {
		return d.puts(hourly, 0)
	}},
	{"schedule-at-another-time", "scheduled", "schedule.put: with at it is due then", "not when it is due", func(d *dishonest) int64 {
		a := oneTime
		a.At = d.Clock.Now().Add(time.Hour).Format(time.RFC3339)
		return d.puts(a, 2*time.Hour)
	}},
	{"schedules-too-many", "scheduled", "schedule.put: a user has at most 100 schedules", "at most 100", func(d *dishonest) int64 {
		a := hourly
		for n := range catalog.MaxSchedules - 2 {
			a.ID = fmt.Sprint(n)
			d.puts(a, time.Hour)
		}
		a.ID = "more"
		return d.puts(a, time.Hour)
	}},
	{"schedule-of-no-agent", "scheduled", "schedule.put: the agent is there and can be run", "no such agent", func(d *dishonest) int64 {
		a := hourly
		a.Agent = "nobody"
		return d.puts(a, time.Hour)
	}},
	{"schedule-deleted-by-another", "scheduled", "schedule.delete: the user has the schedule", "no such schedule", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Gateway, Type: "schedule.delete", Args: catalog.ScheduleDelete{ID: "hourly"}, User: "ben"})
	}},
	{"fired-without-schedule", "scheduled", "plan.open: the user has the schedule", "no such schedule", func(d *dishonest) int64 {
		a := hourly
		a.ID = "weekly"
		return d.fires("plan_1", a, onTheHour, d.next(time.Hour))
	}},
	{"fired-for-another-agent", "scheduled", "plan.open: the schedule is for its agent", "another agent", func(d *dishonest) int64 {
		a := hourly
		a.Agent = "general"
		return d.fires("plan_1", a, onTheHour, d.next(time.Hour))
	}},
	{"fired-early", "scheduled", timeFired, "not due yet", func(d *dishonest) int64 {
		return d.fires("plan_1", hourly, onTheHour.Add(time.Hour), d.next(2*time.Hour))
	}},
	{"fired-twice", "scheduled", timeFired, "in a plan before", func(d *dishonest) int64 {
		d.fires("plan_1", hourly, onTheHour, d.next(time.Hour))
		return d.fires("plan_2", hourly, onTheHour, d.next(time.Hour))
	}},
	{"fired-at-another-time", "scheduled", timeFired, "none of its times", func(d *dishonest) int64 {
		return d.fires("plan_1", oneTime, onTheHour)
	}},
	{"fired-without-next", "scheduled", nextTime, "another next time", func(d *dishonest) int64 {
		return d.fires("plan_1", hourly, onTheHour)
	}},
	{"fired-once-with-next", "scheduled", nextTime, "another next time", func(d *dishonest) int64 {
		return d.fires("plan_1", oneTime, routertest.Began.Add(30*time.Minute), d.next(time.Hour))
	}},
	{"step-signs-action", "running", "a task's intent: its agent has a tool for the type", "has no tool for", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("action", catalog.Action{Type: "open_page"}))
	}},
}
