package router

import (
	"encoding/json"
	"time"
	_ "time/tzdata" // where the system has no database of time zones

	"github.com/robfig/cron/v3"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// readNext computes when a schedule is due next, for the record. State and auditors judge by
// that: the database of time zones changes, and their verdict does not.
func (o *order) readNext(so *state.Order) error {
	var put catalog.SchedulePut
	var open catalog.PlanOpen
	var err error
	switch o.env.Type() {
	case state.TypeSchedulePut:
		put, err = argsOf[catalog.SchedulePut](o.env)
	case state.TypePlanOpen:
		if open, err = argsOf[catalog.PlanOpen](o.env); err == nil && open.Schedule != nil {
			put = o.view.Schedule(*so, open.Schedule.ID)
		}
	}
	switch {
	case err != nil:
		return err
	case put.At != "" && open.Schedule == nil:
		so.Next, err = time.Parse(time.RFC3339Nano, put.At)
		so.Next = so.Next.UTC().Truncate(time.Millisecond)
	case put.Cron != "":
		var times cron.Schedule
		if times, err = timesOf(put); err != nil {
			return err
		}
		if f := open.Schedule; f != nil && !times.Next(f.Due.Add(-time.Second)).Equal(f.Due) {
			return illegal("/intent/args/schedule/due", "is none of the schedule's times")
		}
		so.Next = times.Next(o.now).UTC()
	default:
		return nil // what has no next time, or state says what is wrong
	}
	if err != nil || so.Next.IsZero() {
		return illegal("/intent/args", "names no time of the next five years")
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

// dueNow are schedules whose time has come, with the newest time that has.
func (r *Router) dueNow() json.RawMessage {
	now := r.cfg.Now()
	out := r.state.Due(now)
	for i, s := range out {
		if times, err := timesOf(s.SchedulePut); err == nil && s.Cron != "" { // else its time zone is there no more
			out[i].Next = newest(times, s.Next, now)
		}
	}
	raw, _ := json.Marshal(out) // plain data
	return raw
}

// newest is the last of the times from the first to now. Many may have been missed: where
// one lies within the last hour, it is looked for there.
func newest(times cron.Schedule, first, now time.Time) time.Time {
	if recent := times.Next(now.Add(-time.Hour)); recent.After(first) && !recent.After(now) {
		first = recent
	}
	for next := first; !next.After(now) && !next.IsZero(); next = times.Next(next) {
		first = next
	}
	return first.UTC()
}
