package router

import (
	"time"
	_ "time/tzdata" // where the system has no database of time zones

	"github.com/robfig/cron/v3"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/state"
)

// readNext computes when a schedule is due next, for the record. State and auditors judge by
// that: the database of time zones changes, and their verdict does not.
func (o *order) readNext(so *state.Order) error {
	now := o.now
	var s catalog.Schedule
	switch o.env.Type() {
	case state.TypeSchedulePut:
		put, err := argsOf[catalog.SchedulePut](o.env)
		if err != nil {
			return err
		}
		s.SchedulePut = put
	case state.TypePlanOpen:
		open, err := argsOf[catalog.PlanOpen](o.env)
		if err != nil || open.Schedule == nil {
			return err
		}
		there := false
		if s, there = o.view.Schedule(*so, open.Schedule.ID); !there || s.At != "" {
			return nil // state says what is wrong, or it is the only time
		}
		if times, err := timesOf(s.SchedulePut); err != nil || !times.Next(open.Schedule.Due.Add(-time.Second)).Equal(open.Schedule.Due) {
			return illegal("/intent/args/schedule/due", "is none of the schedule's times")
		}
	default:
		return nil
	}
	if s.At != "" {
		at, err := time.Parse(time.RFC3339Nano, s.At)
		if err != nil {
			return illegal("/intent/args/at", "is not a time")
		}
		so.Next = at.UTC().Truncate(time.Millisecond)
	} else {
		times, err := timesOf(s.SchedulePut)
		if err != nil {
			return err
		}
		if so.Next = times.Next(now).UTC(); so.Next.IsZero() {
			return illegal("/intent/args/cron", "names no time of the next five years")
		}
	}
	o.facts.Next = intents.FormatTime(so.Next)
	return nil
}

// timesOf are the times that a schedule with cron names. The pattern of its five fields is
// the schema's, so they name no zone.
func timesOf(s catalog.SchedulePut) (cron.Schedule, error) {
	zone, err := time.LoadLocation(s.TimeZone) // empty: UTC
	if err != nil || s.TimeZone == "Local" {
		return nil, illegal("/intent/args/time_zone", "no such time zone: such as Europe/Oslo")
	}
	times, err := cron.ParseStandard(s.Cron)
	if err != nil {
		return nil, illegal("/intent/args/cron", err.Error())
	}
	if spec, ok := times.(*cron.SpecSchedule); ok {
		spec.Location = zone
	}
	return times, nil
}

// dueNow are the schedules whose time has come, with the newest time that has.
func (r *Router) dueNow() []bus.DueSchedule {
	now := r.cfg.Now()
	out := []bus.DueSchedule{}
	for _, s := range r.state.Due(now) {
		due := s.Next
		if s.Cron != "" {
			times, err := timesOf(s.SchedulePut)
			if err != nil {
				continue // its time zone is there no more
			}
			if due = newest(times, due, now); due.After(now) {
				continue // another database of time zones has computed it
			}
		}
		out = append(out, bus.DueSchedule{
			Tenant: s.Tenant, UserID: s.User, ID: s.ID, Agent: s.Agent, Input: s.Input, TimeZone: s.TimeZone, Due: due,
			Roles: s.Roles, Client: s.Client,
		})
	}
	return out
}

// newest is the last of the times from the first to now: many may have been missed, so it
// is looked for from now backwards.
func newest(times cron.Schedule, first, now time.Time) time.Time {
	for back := time.Hour; ; back *= 24 {
		from := now.Add(-back)
		if from.Before(first) {
			from = first.Add(-time.Second)
		}
		due := times.Next(from)
		if due.After(now) && !from.Before(first) {
			continue
		}
		for next := due; !next.After(now) && !next.IsZero(); next = times.Next(next) {
			due = next
		}
		return due.UTC()
	}
}
