package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// schedule has a request of a user carried out at times to come. Who fires it opens a plan,
// under a grant of that moment.
type schedule struct {
	catalog.Schedule
	Tenant string   `json:"tenant"`
	User   string   `json:"user"`
	Roles  []string `json:"roles"`  // of the grant of the order that put it
	Client string   `json:"client"` // act.client of that grant
	Put    int64    `json:"put"`    // position of that order, which holds the request
}

// subjectSchedules are all schedules of a user.
func subjectSchedules(o Order) storage.Subject {
	return storage.Subject("schedules/" + o.Tenant + "/" + o.User)
}

// scheduleOf finds a schedule of the order's user; nil: there is none.
func (s *State) scheduleOf(o Order, id string) *schedule {
	return s.schedules[o.Tenant+"/"+o.User+"/"+id]
}

// schedulesOf are the schedules of the order's user.
func (s *State) schedulesOf(o Order) (out []catalog.Schedule) {
	for name, x := range s.schedules {
		if strings.HasPrefix(name, o.Tenant+"/"+o.User+"/") {
			out = append(out, x.Schedule)
		}
	}
	return out
}

// schedulePut makes a schedule, or another one in its place. Order.Next is when it is due,
// as the router has computed it.
var schedulePut = move(TypeSchedulePut,
	func(v *View, o Order, a catalog.SchedulePut) (Effect, error) {
		v.rely(subjectSchedules(o))
		v.rely(SubjectRegistry)
		v.rely(SubjectTenant(o.Tenant))
		id := scheduleID(o, a)
		at, err := time.Parse(time.RFC3339Nano, a.At)
		switch {
		case !o.Next.After(o.Now):
			return Effect{}, illegal("/intent/args", "is due at no time to come")
		case a.At != "" && (err != nil || !at.Truncate(time.Millisecond).Equal(o.Next)):
			return Effect{}, illegal("/intent/args/at", "is not when it is due")
		case v.s.scheduleOf(o, id) == nil && len(v.s.schedulesOf(o)) >= catalog.MaxSchedules:
			return Effect{}, illegal("/intent/args/id", fmt.Sprintf("a user has at most %d schedules: delete one", catalog.MaxSchedules))
		}
		if a.Agent != "" {
			if _, _, err := v.s.runsOf(o.Tenant, a.Agent); err != nil {
				return Effect{}, err
			}
		}
		return Effect{catalog.SchedulePutResult{ID: id, Next: o.Next}, []storage.Subject{subjectSchedules(o)}}, nil
	},
	func(s *State, o Order, a catalog.SchedulePut) error {
		a.ID = scheduleID(o, a)
		s.schedules[o.Tenant+"/"+o.User+"/"+a.ID] = &schedule{
			Schedule: catalog.Schedule{SchedulePut: a, Next: o.Next}, Tenant: o.Tenant, User: o.User,
			Roles: o.Roles, Client: o.Grant.Client, Put: o.Recorded,
		}
		s.callMade(o)
		return nil
	}).keepsAllBut("input")

// scheduleID is the id that the order says, or one that follows from its own.
func scheduleID(o Order, a catalog.SchedulePut) string {
	if a.ID != "" {
		return a.ID
	}
	return "s_" + strings.TrimPrefix(o.Decision.IntentID, "sha256:")[:16]
}

// scheduleList counts the user's schedules. What they are is told, and in no record.
var scheduleList = move("schedule.list",
	func(v *View, o Order, _ catalog.ScheduleList) (Effect, error) {
		v.rely(subjectSchedules(o))
		return Effect{Result: catalog.ScheduleListResult{Schedules: len(v.s.schedulesOf(o))}}, nil
	},
	func(s *State, o Order, _ catalog.ScheduleList) error { s.callMade(o); return nil })

// scheduleDelete ends a schedule. A plan that it has opened goes on.
var scheduleDelete = move("schedule.delete",
	func(v *View, o Order, a catalog.ScheduleDelete) (Effect, error) {
		v.rely(subjectSchedules(o))
		if v.s.scheduleOf(o, a.ID) == nil {
			return Effect{}, illegal("/intent/args/id", "the user has no such schedule")
		}
		return accepted(subjectSchedules(o)), nil
	},
	func(s *State, o Order, a catalog.ScheduleDelete) error {
		delete(s.schedules, o.Tenant+"/"+o.User+"/"+a.ID)
		s.callMade(o)
		return nil
	})

// action is recorded, and has no effect here: whoever shows the plan to its user shows it.
var action = move("action",
	func(*View, Order, catalog.Action) (Effect, error) { return accepted(), nil },
	func(s *State, o Order, _ catalog.Action) error { s.callMade(o); return nil }).keepsAllBut("payload")

// callMade tells later tasks of an agent's call that the router has carried out.
func (s *State) callMade(o Order) {
	if p := s.plans[o.Tenant+"/"+o.Context.PlanID]; p != nil && !o.Released { // which was told when it was held
		x := &openOrder{ID: o.Decision.IntentID, Position: o.Position}
		p.addCall(x, o)
		p.callEnded(x, intents.Done)
	}
}

// mayFire says whether a plan may be opened for a time of a schedule: it stands, the plan is
// of its agent, and the time has come and was in no plan before. Order.Next is its next
// time; zero: it has none. The text of the request is not judged.
func (v *View) mayFire(o Order, a catalog.PlanOpen) error {
	if a.Schedule == nil {
		return nil
	}
	v.rely(subjectSchedules(o))
	x := v.s.scheduleOf(o, a.Schedule.ID)
	due := a.Schedule.Due.Truncate(time.Millisecond)
	switch {
	case x == nil:
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

// fired is the effect of a plan on the schedule that it was opened for.
func (s *State) fired(o Order, a catalog.PlanOpen) {
	if a.Schedule == nil {
		return
	}
	x := s.scheduleOf(o, a.Schedule.ID)
	switch {
	case x == nil: // an auditor need not have seen it
	case o.Next.IsZero():
		delete(s.schedules, o.Tenant+"/"+o.User+"/"+x.ID)
	default:
		x.Next = o.Next
	}
}

// ToldSchedules are the schedules of a user, the next one first.
func (s *State) ToldSchedules(tenant, user string) catalog.Told {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := s.schedulesOf(Order{Tenant: tenant, User: user})
	slices.SortFunc(out, func(a, b catalog.Schedule) int { return a.Next.Compare(b.Next) })
	return catalog.Told{Schedules: out}
}

// Schedule that an order of its user names; false: there is none.
func (v *View) Schedule(o Order, id string) (catalog.Schedule, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(subjectSchedules(o))
	x := v.s.scheduleOf(o, id)
	if x == nil {
		return catalog.Schedule{}, false
	}
	return x.Schedule, true
}

// Due is a schedule whose time has come.
type Due struct {
	catalog.Schedule
	Tenant, User string
	Roles        []string // of the grant that put it
	Client       string   // act.client of that grant
}

// maxDue bounds what Due lists at once.
const maxDue = 100

// Due lists schedules whose time has come, in no order: so none waits for ever behind
// those whose plans are refused.
func (s *State) Due(now time.Time) (out []Due) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, x := range s.schedules {
		if len(out) < maxDue && !x.Next.After(now) {
			out = append(out, Due{x.Schedule, x.Tenant, x.User, x.Roles, x.Client})
		}
	}
	return out
}

// stands says whether a schedule rests on an order at a position.
func (s *State) stands(put int64) bool {
	for _, x := range s.schedules {
		if x.Put == put {
			return true
		}
	}
	return false
}
