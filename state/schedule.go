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

// A schedule has a request of a user carried out at times to come. Who fires it opens a
// plan, under a grant of that moment. They are kept by "tenant/user/id".

// ofUser begins the names of the schedules of an order's user.
func ofUser(o Order) string { return o.Tenant + "/" + o.User + "/" }

// subjectSchedules are all schedules of a user.
func subjectSchedules(o Order) storage.Subject { return storage.Subject("schedules/" + ofUser(o)) }

// schedulesOf are the schedules of the order's user.
func (s *State) schedulesOf(o Order) []catalog.Schedule {
	return slices.DeleteFunc(slices.Collect(maps.Values(s.schedules)), func(x catalog.Schedule) bool { return x.Tenant != o.Tenant || x.User != o.User })
}

// schedulePut makes a schedule, or another one in its place. Order.Next is when it is due,
// as the router has computed it.
var schedulePut = move(TypeSchedulePut,
	func(v *View, o Order, a catalog.SchedulePut) (Effect, error) {
		v.rely(subjectSchedules(o))
		id, at := scheduleID(o, a), time.Time{}
		_, there := v.s.schedules[ofUser(o)+id]
		if a.At != "" {
			at, _ = time.Parse(time.RFC3339Nano, a.At) // else it is not when it is due
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
			v.rely(SubjectRegistry)
			v.rely(SubjectTenant(o.Tenant))
			if _, _, err := v.s.runsOf(o.Tenant, a.Agent); err != nil {
				return Effect{}, err
			}
		}
		return Effect{catalog.ScheduleNext{ID: id, Next: o.Next}, []storage.Subject{subjectSchedules(o)}}, nil
	},
	func(s *State, o Order, a catalog.SchedulePut) error {
		a.ID = scheduleID(o, a)
		s.schedules[ofUser(o)+a.ID] = catalog.Schedule{SchedulePut: a, Next: o.Next, ByAgent: o.Signer == intents.RoleTask, Tenant: o.Tenant, User: o.User, Roles: o.Roles, Client: o.Grant.Client, Put: o.Recorded}
		return s.callMade(o)
	}).keepsAllBut("input")

// scheduleID is the id that the order says, or one that follows from its own.
func scheduleID(o Order, a catalog.SchedulePut) string {
	if a.ID != "" {
		return a.ID
	}
	return "s_" + strings.TrimPrefix(o.Decision.IntentID, "sha256:")[:16]
}

// scheduleList counts the user's schedules. What they are is told, and in no record.
var scheduleList = move(TypeScheduleList,
	func(v *View, o Order, _ struct{}) (Effect, error) {
		v.rely(subjectSchedules(o))
		return Effect{Result: catalog.ScheduleCount{Schedules: len(v.s.schedulesOf(o))}}, nil
	},
	func(s *State, o Order, _ struct{}) error { return s.callMade(o) })

// scheduleDelete ends a schedule. A plan that it has opened goes on.
var scheduleDelete = move("schedule.delete",
	func(v *View, o Order, a catalog.ScheduleDelete) (Effect, error) {
		v.rely(subjectSchedules(o))
		if _, there := v.s.schedules[ofUser(o)+a.ID]; !there {
			return Effect{}, illegal("/intent/args/id", "the user has no such schedule")
		}
		return accepted(subjectSchedules(o)), nil
	},
	func(s *State, o Order, a catalog.ScheduleDelete) error {
		delete(s.schedules, ofUser(o)+a.ID)
		return s.callMade(o)
	})

// action is recorded, and has no effect here: whoever shows the plan to its user shows it.
var action = move("action",
	func(*View, Order, catalog.Action) (Effect, error) { return accepted(), nil },
	func(s *State, o Order, _ catalog.Action) error { return s.callMade(o) }).keepsAllBut("payload")

// callMade tells later tasks of an agent's call that the router has carried out.
func (s *State) callMade(o Order) error {
	if p := s.plans[o.Tenant+"/"+o.Context.PlanID]; p != nil && !o.Released { // which was told when it was held
		x := &openOrder{ID: o.Decision.IntentID, Position: o.Position}
		p.addCall(x, o)
		p.callEnded(x, intents.Done)
	}
	return nil
}

// mayFire says whether a plan may be opened for a time of a schedule: it stands, the plan is
// of its agent, and the time has come and was in no plan before. Order.Next is its next
// time; zero: it has none. The text of the request is not judged.
func (v *View) mayFire(o Order, a catalog.PlanOpen) error {
	if a.Schedule == nil {
		return nil
	}
	v.rely(subjectSchedules(o))
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

// fired is the effect of a plan on the schedule that it was opened for, which an auditor
// need not have seen.
func (s *State) fired(o Order, a catalog.PlanOpen) {
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

// Schedule of an order's user, by its id; zero: there is none. The decision relies on it.
func (v *View) Schedule(o Order, id string) catalog.SchedulePut {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(subjectSchedules(o))
	return v.s.schedules[ofUser(o)+id].SchedulePut
}

// Schedules are those of a user, as the user is told them, the next one first.
func (s *State) Schedules(tenant, user string) []catalog.Schedule {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := s.schedulesOf(Order{Tenant: tenant, User: user})
	for i, x := range out {
		out[i] = catalog.Schedule{SchedulePut: x.SchedulePut, Next: x.Next}
	}
	slices.SortFunc(out, func(a, b catalog.Schedule) int { return a.Next.Compare(b.Next) })
	return out
}

// Due lists schedules whose time has come, some at once and in no order: so none waits for
// ever behind those whose plans are refused.
func (s *State) Due(now time.Time) (out []catalog.Schedule) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, x := range s.schedules {
		if t := s.dir.tenants[x.Tenant]; t != nil && t.Place.To != "" {
			continue // no plan would be opened
		}
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
