package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// A schedule carries out a request of a user at future times. The scheduler opens a plan under a
// grant issued at that moment. Schedules are stored by "tenant/user/id".

// ofUser is the prefix of the names of the schedules of an intent's user.
func ofUser(o Intent) string { return o.Tenant + "/" + o.User + "/" }

// subjectSchedules are all schedules of a user.
func subjectSchedules(o Intent) storage.Subject { return storage.Subject("schedules/" + ofUser(o)) }

// schedulesOf are the schedules of the intent's user.
func (s *State) schedulesOf(o Intent) []catalog.Schedule {
	return slices.DeleteFunc(slices.Collect(maps.Values(s.schedules)), func(x catalog.Schedule) bool { return x.Tenant != o.Tenant || x.User != o.User })
}

// schedulePut makes or replaces a schedule. Intent.Next is when it is due, as the router has
// computed it.
var schedulePut = newTransition(TypeSchedulePut,
	func(v *View, o Intent, a catalog.SchedulePut) (Effect, error) {
		v.addRead(subjectSchedules(o))
		id, at := scheduleID(o, a), time.Time{}
		_, there := v.s.schedules[ofUser(o)+id]
		if a.At != "" {
			at, _ = time.Parse(time.RFC3339Nano, a.At) // on error at is zero, which differs from Next
		}
		switch {
		case !o.Next.After(o.Now):
			return Effect{}, illegal("/intent/args", "is due at no time to come")
		case a.At != "" && !at.Truncate(time.Millisecond).Equal(o.Next):
			return Effect{}, illegal("/intent/args/at", "is not when it is due")
		case !there && len(v.s.schedulesOf(o)) >= catalog.MaxSchedules:
			return Effect{}, illegal("/intent/args/id", fmt.Sprintf("a user has at most %d schedules: delete one", catalog.MaxSchedules))
		}
		if a.Agent != "" {
			v.addRead(SubjectRegistry)
			v.addRead(SubjectTenant(o.Tenant))
			if _, _, err := v.s.runsOf(o.Tenant, a.Agent); err != nil {
				return Effect{}, err
			}
		}
		return Effect{catalog.ScheduleNext{ID: id, Next: o.Next}, []storage.Subject{subjectSchedules(o)}}, nil
	},
	func(s *State, o Intent, a catalog.SchedulePut) error {
		a.ID = scheduleID(o, a)
		var sources []intents.Source
		if p := s.plans[o.Tenant+"/"+o.Context.PlanID]; p != nil {
			sources = p.Sources
		}
		s.schedules[ofUser(o)+a.ID] = catalog.Schedule{SchedulePut: a, Next: o.Next, ByAgent: o.Signer == intents.RoleTask, Sources: sources, Tenant: o.Tenant, User: o.User, Roles: o.Roles, Client: o.Grant.Client, Put: o.Recorded}
		return s.callMade(o)
	}).retainsAllBut("input")

// scheduleID is the id in the intent, or one derived from the intent's own.
func scheduleID(o Intent, a catalog.SchedulePut) string {
	if a.ID != "" {
		return a.ID
	}
	return "s_" + strings.TrimPrefix(o.Decision.IntentID, "sha256:")[:16]
}

// scheduleList counts the user's schedules. Their content is returned, and in no record.
var scheduleList = newTransition(TypeScheduleList,
	func(v *View, o Intent, _ struct{}) (Effect, error) {
		v.addRead(subjectSchedules(o))
		return Effect{catalog.ScheduleCount{Schedules: len(v.s.schedulesOf(o))}, []storage.Subject{subjectSources(o.Tenant, o.Context.PlanID)}}, nil
	},
	func(s *State, o Intent, _ struct{}) error {
		if p := s.plans[o.Tenant+"/"+o.Context.PlanID]; p != nil {
			for _, x := range s.schedulesOf(o) {
				s.addSources(p, x.Sources, o.At)
			}
		}
		return s.callMade(o)
	})

// scheduleDelete ends a schedule. A plan that it has opened continues.
var scheduleDelete = newTransition("schedule.delete",
	func(v *View, o Intent, a catalog.ScheduleDelete) (Effect, error) {
		v.addRead(subjectSchedules(o))
		if _, there := v.s.schedules[ofUser(o)+a.ID]; !there {
			return Effect{}, illegal("/intent/args/id", "the user has no such schedule")
		}
		return accepted(subjectSchedules(o)), nil
	},
	func(s *State, o Intent, a catalog.ScheduleDelete) error {
		delete(s.schedules, ofUser(o)+a.ID)
		return s.callMade(o)
	})

// action is recorded, and has no effect here: it is shown to the user with the plan.
var action = newTransition("action",
	func(*View, Intent, catalog.Action) (Effect, error) { return accepted(), nil },
	func(s *State, o Intent, _ catalog.Action) error { return s.callMade(o) }).retainsAllBut("payload")

// callMade reports a call that the router has executed to later tasks of the agent.
func (s *State) callMade(o Intent) error {
	if p := s.plans[o.Tenant+"/"+o.Context.PlanID]; p != nil && !o.Released { // a released intent was recorded when it was held
		x := &openIntent{ID: o.Decision.IntentID, Position: o.Position}
		p.addCall(x, o)
		p.callEnded(x, intents.Done)
	}
	return nil
}

// mayFire checks whether a plan may be opened for a time of a schedule: the schedule exists, the
// plan is of its agent, and the time has come and no plan was opened for it. Intent.Next is its
// next time; zero if it has none. The text of the request is not judged.
func (v *View) mayFire(o Intent, a catalog.PlanOpen) error {
	if a.Schedule == nil {
		return nil
	}
	v.addRead(subjectSchedules(o))
	x, there := v.s.schedules[ofUser(o)+a.Schedule.ID]
	switch due := a.Schedule.Due.Truncate(time.Millisecond); {
	case !there:
		return illegal("/intent/args/schedule/id", "the user has no such schedule")
	case x.Agent != a.Agent:
		return illegal("/intent/args/agent", "the schedule is for another agent")
	case due.After(o.Now):
		return illegal("/intent/args/schedule/due", "is not due yet")
	case due.Before(x.Next), x.At != "" && !due.Equal(x.Next):
		return illegal("/intent/args/schedule/due", "is none of its times, or was in a plan before")
	case x.At == "" && !o.Next.After(o.Now), x.At != "" && !o.Next.IsZero():
		return illegal("/intent/args/schedule/due", "has another next time")
	}
	return nil
}

// fired applies a plan to the schedule that it was opened for, which an auditor need not have
// seen.
func (s *State) fired(o Intent, a catalog.PlanOpen) {
	if a.Schedule == nil {
		return
	}
	name := ofUser(o) + a.Schedule.ID
	x, there := s.schedules[name]
	if x.Next = o.Next; o.Next.IsZero() {
		delete(s.schedules, name)
	} else if there {
		s.schedules[name] = x
	}
}

// Schedule of an intent's user, by its id; zero if there is none. It is added to the decision's
// reads.
func (v *View) Schedule(o Intent, id string) catalog.SchedulePut {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.addRead(subjectSchedules(o))
	return v.s.schedules[ofUser(o)+id].SchedulePut
}

// Schedules are those of a user, as shown to the user, the next one first.
func (s *State) Schedules(tenant, user string) []catalog.Schedule {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := s.schedulesOf(Intent{Tenant: tenant, User: user})
	for i, x := range out {
		out[i] = catalog.Schedule{SchedulePut: x.SchedulePut, Next: x.Next}
	}
	slices.SortFunc(out, func(a, b catalog.Schedule) int { return a.Next.Compare(b.Next) })
	return out
}

// Due lists up to a bounded number of due schedules in random order, so that none waits forever
// behind those whose plans are refused.
func (s *State) Due(now time.Time) (out []catalog.Schedule) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, x := range s.schedules {
		if len(out) < 100 && !x.Next.After(now) {
			out = append(out, x)
		}
	}
	return out
}

// TenantSchedules are those of all users of a tenant, by user and id.
func (s *State) TenantSchedules(tenant string) (out []catalog.Schedule) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(s.schedules)) {
		if x := s.schedules[name]; x.Tenant == tenant {
			out = append(out, x)
		}
	}
	return out
}
