package router

import (
	"encoding/json"
	"time"
	_ "time/tzdata" // where the system has no database of time zones

	"github.com/robfig/cron/v3"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state"
)

// readNext computes when a schedule is due next and adds it to the record. State and auditors judge
// by the recorded time, because the database of time zones changes and their verdict must not.
func (d *decision) readNext(so *state.Intent) error {
	var put catalog.SchedulePut
	var open catalog.PlanOpen
	var err error
	switch d.env.Type() {
	case state.TypeSchedulePut:
		put, err = argsOf[catalog.SchedulePut](d.env)
	case state.TypePlanOpen:
		if open, err = argsOf[catalog.PlanOpen](d.env); err == nil && open.Schedule != nil {
			put = d.view.Schedule(*so, open.Schedule.ID)
		}
	}
	switch {
	case err != nil:
		return err
	case put.At != "" && open.Schedule == nil:
		so.Next, err = time.Parse(time.RFC3339Nano, put.At)
		so.Next = so.Next.UTC().Truncate(time.Millisecond)
	case put.Cron != "":
		due, err := timesOf(put)
		if err != nil {
			return err
		}
		if f := open.Schedule; f != nil && !due.Next(f.Due.Add(-time.Second)).Equal(f.Due) {
			return illegal("/intent/args/schedule/due", "is none of the schedule's times")
		}
		so.Next = due.Next(d.now).UTC()
	default:
		return nil // it has no next time, or state reports the error
	}
	if err != nil || so.Next.IsZero() {
		at := "/intent/args/at"
		if put.Cron != "" {
			at = "/intent/args/cron"
		}
		return illegal(at, "names no time of the next five years")
	}
	d.inputs.Next = intents.FormatTime(so.Next)
	return nil
}

// times are the times of a cron line in a zone.
type times struct {
	line *cron.SpecSchedule // of UTC
	zone *time.Location
}

// timesOf returns the times of a schedule with cron. The schema restricts its five fields to a
// pattern, so they name no zone.
func timesOf(s catalog.SchedulePut) (times, error) {
	zone, err := time.LoadLocation(s.TimeZone) // empty: UTC
	if err != nil || s.TimeZone == "Local" {
		return times{}, illegal("/intent/args/time_zone", "no such time zone: such as Europe/Oslo")
	}
	read, err := cron.ParseStandard(s.Cron)
	if err != nil {
		return times{}, illegal("/intent/args/cron", "is no line of minute, hour, day, month and weekday (0 to 6, Sunday is 0), such as 0 9 * * mon-fri: "+err.Error())
	}
	line, ok := read.(*cron.SpecSchedule)
	if !ok {
		return times{}, illegal("/intent/args/cron", "is no line of five fields")
	}
	line.Location = time.UTC
	return times{line, zone}, nil
}

// everyHour are the bits of a line whose hours are all of the day's.
const everyHour = 1<<24 - 1

// Next is the first time after t, or zero if there is none within five years. The line names what a
// clock in the zone shows. When that clock changes, a time that it shows twice comes once, and one
// that it skips comes at the moment of the change. A line of every hour continues in even steps
// through a change by whole hours.
func (s times) Next(t time.Time) time.Time {
	t = t.In(s.zone)
	shown := clock.Reading(t)
	wall := s.line.Next(shown)
	if step := wall.Sub(shown); s.line.Hour&everyHour == everyHour && step <= time.Hour {
		next := t.Add(step)
		_, now := t.Zone()
		_, then := next.Zone()
		if (then-now)%3600 == 0 && s.names(next) {
			return next
		}
	}
	for ; !wall.IsZero(); wall = s.line.Next(wall) {
		if next := clock.In(s.zone, wall); next.After(t) {
			return next
		}
	}
	return time.Time{}
}

// names reports whether the line names a time as the clock shows it.
func (s times) names(t time.Time) bool {
	wall := clock.Reading(t)
	return s.line.Next(wall.Add(-time.Second)).Equal(wall)
}

// dueNow returns the schedules that are due, each with its newest due time.
func (r *Router) dueNow() json.RawMessage {
	now := r.cfg.Now()
	out := r.state.Due(now)
	for i, s := range out {
		if due, err := timesOf(s.SchedulePut); err == nil && s.Cron != "" { // otherwise its time zone no longer exists
			out[i].Next = newest(due, s.Next, now)
		}
	}
	raw, _ := json.Marshal(out) // plain data
	return raw
}

// newest is the last of the times from the first to now. Many may have been missed, so a time
// within the last hour is looked for there first.
func newest(due times, first, now time.Time) time.Time {
	if recent := due.Next(now.Add(-time.Hour)); recent.After(first) && !recent.After(now) {
		first = recent
	}
	for next := first; !next.After(now) && !next.IsZero(); next = due.Next(next) {
		first = next
	}
	return first.UTC()
}
