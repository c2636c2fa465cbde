package router_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// putSchedule is schedule.put by the gateway, for ana.
func putSchedule(w *routertest.World, a catalog.SchedulePut) *intents.Answer {
	return w.Do(routertest.Intent{By: w.Gateway, Type: "schedule.put", Args: a})
}

// fire is plan.open for a time of a schedule.
func fire(w *routertest.World, plan, schedule string, due time.Time, change func(a *catalog.PlanOpen)) routertest.Intent {
	o := w.NewPlan(plan).OpenIntent()
	a := catalog.PlanOpen{PlanID: w.NewPlan(plan).ID, Task: "Water the plants.", Agent: "general", Schedule: &catalog.Firing{ID: schedule, Due: due}}
	if change != nil {
		change(&a)
	}
	o.Args = a
	return o
}

func listed(w *routertest.World) []catalog.Schedule {
	w.Helper()
	return w.Dir.Schedules("default", "ana")
}

// TestSchedule: a schedule exists until it is deleted, and opens one plan for each of its times and
// for no other, only the newest if several were missed. All of it survives a restart.
func TestSchedule(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	daily := catalog.SchedulePut{ID: "daily", Agent: "general", Input: "Water the plants.", Cron: "0 9 * * *", TimeZone: "Europe/Oslo"}
	first := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	got := routertest.Result[catalog.ScheduleNext](w, w.Want(putSchedule(w, daily), intents.OK))
	if want := (catalog.ScheduleNext{ID: "daily", Next: first}); got != want {
		t.Fatalf("put %+v, want %+v", got, want)
	}
	if diff := cmp.Diff([]catalog.Schedule{{SchedulePut: daily, Next: first}}, listed(w)); diff != "" {
		t.Error(diff)
	}
	refused(t, w.Do(fire(w, "soon", "daily", first, nil)), intents.MalformedArgs, "not due yet")
	w.Clock.Move(first.Add(49 * time.Hour).Sub(w.Clock.Now())) // three times have come
	newest := first.Add(48 * time.Hour)
	refused(t, w.Do(fire(w, "odd", "daily", newest.Add(time.Minute), nil)), intents.MalformedArgs, "none of the schedule's times")
	refused(t, w.Do(fire(w, "early", "daily", first.Add(-24*time.Hour), nil)), intents.MalformedArgs, "in a plan before")
	refused(t, w.Do(fire(w, "other", "daily", newest, func(a *catalog.PlanOpen) { a.Agent = "" })), intents.MalformedArgs, "for another agent")
	refused(t, w.Do(fire(w, "none", "weekly", newest, nil)), intents.MalformedArgs, "no such schedule")
	bens := fire(w, "ben", "daily", newest, nil)
	bens.User = "ben"
	refused(t, w.Do(bens), intents.MalformedArgs, "no such schedule")
	w = w.Restart()
	w.Want(w.Do(fire(w, "fired", "daily", newest, nil)), intents.OK)
	w = w.Restart()
	refused(t, w.Do(fire(w, "again", "daily", newest, nil)), intents.MalformedArgs, "in a plan before")
	refused(t, w.Do(fire(w, "missed", "daily", first, nil)), intents.MalformedArgs, "in a plan before")
	if next := listed(w)[0].Next; !next.Equal(newest.Add(24 * time.Hour)) {
		t.Errorf("due next at %s", next)
	}
	silent := w.Dir.Silent(0)
	if len(silent) != 1 || silent[0].Plan.PlanID != w.NewPlan("fired").ID {
		t.Errorf("nobody drives the plan of a schedule, so it is handed out: %+v", silent)
	}
	refused(t, w.Do(routertest.Intent{By: w.Gateway, Type: "schedule.delete", Args: catalog.ScheduleDelete{ID: "daily"}, User: "ben"}), intents.MalformedArgs, "no such schedule")
	w.Want(w.Do(routertest.Intent{By: w.Gateway, Type: "schedule.delete", Args: catalog.ScheduleDelete{ID: "daily"}}), intents.OK)
	w.Clock.Move(24 * time.Hour)
	refused(t, w.Do(fire(w, "gone", "daily", newest.Add(24*time.Hour), nil)), intents.MalformedArgs, "no such schedule")

	at := w.Clock.Now().Add(time.Hour).Truncate(time.Second)
	once := routertest.Result[catalog.ScheduleNext](w, w.Want(putSchedule(w, catalog.SchedulePut{Agent: "general", Input: "Call.", At: at.In(time.FixedZone("", 3600)).Format(time.RFC3339)}), intents.OK))
	w.Clock.Move(25 * time.Hour)
	refused(t, w.Do(fire(w, "late", once.ID, at.Add(time.Second), nil)), intents.MalformedArgs, "none of its times")
	w.Want(w.Do(fire(w, "once", once.ID, at, nil)), intents.OK)
	if len(listed(w)) != 0 {
		t.Error("what is due once is gone with its plan")
	}
	w.Restart()
}

// TestScheduleRefused: a schedule without a future time is refused, and so is one too many.
func TestScheduleRefused(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, x := range []struct {
		a     catalog.SchedulePut
		code  intents.Code
		words string
	}{
		{catalog.SchedulePut{Cron: "61 * * * *"}, intents.MalformedArgs, "above maximum"},
		{catalog.SchedulePut{Cron: "0 9 * * 7"}, intents.MalformedArgs, "Sunday is 0"},
		{catalog.SchedulePut{Cron: "0 9 L * *"}, intents.MalformedArgs, "is no line of minute, hour, day"},
		{catalog.SchedulePut{Cron: "*/0 * * * *"}, intents.MalformedArgs, "step of range"},
		{catalog.SchedulePut{Cron: "0 0 30 2 *"}, intents.MalformedArgs, "no time of the next five years"},
		{catalog.SchedulePut{Cron: "TZ=UTC 0 0 1 1"}, intents.SchemaInvalid, ""},
		{catalog.SchedulePut{Cron: "@every 1s"}, intents.SchemaInvalid, ""},
		{catalog.SchedulePut{Cron: "* * * * *", TimeZone: "Europe/Atlantis"}, intents.MalformedArgs, "no such time zone"},
		{catalog.SchedulePut{Cron: "* * * * *", TimeZone: "Local"}, intents.MalformedArgs, "no such time zone"},
		{catalog.SchedulePut{Cron: "* * * * *", TimeZone: "/etc/passwd"}, intents.MalformedArgs, "no such time zone"},
		{catalog.SchedulePut{At: "2026-11-20T10:00:00Z"}, intents.MalformedArgs, "no time to come"},
		{catalog.SchedulePut{At: "tomorrow"}, intents.SchemaInvalid, ""},
		{catalog.SchedulePut{}, intents.SchemaInvalid, ""},
		{catalog.SchedulePut{Cron: "* * * * *", At: "2027-11-20T10:00:00Z"}, intents.SchemaInvalid, ""},
		{catalog.SchedulePut{Cron: "* * * * *", Agent: "nobody"}, intents.MalformedArgs, "no such agent"},
	} {
		x.a.Input = "Do it."
		refused(t, putSchedule(w, x.a), x.code, x.words)
	}
	if a := putSchedule(w, catalog.SchedulePut{Input: "Do it.", Cron: "0 0 31 2 *"}); a.Pointer != "/intent/args/cron" {
		t.Errorf("a line that names no time is refused at %q", a.Pointer)
	}
	one := catalog.SchedulePut{Input: "Do it.", Cron: "0 9 * * *"}
	for n := range catalog.MaxSchedules {
		one.ID = fmt.Sprintf("s%d", n)
		w.Want(putSchedule(w, one), intents.OK)
	}
	one.ID, one.Input = "s0", "Do it well."
	w.Want(putSchedule(w, one), intents.OK)
	one.ID = ""
	refused(t, putSchedule(w, one), intents.MalformedArgs, "at most 100 schedules")
	w.Restart()
}

// TestScheduleOfLostRights: a time of a schedule opens no plan if its user may no longer do so, and
// the record says so.
func TestScheduleOfLostRights(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	due := routertest.Result[catalog.ScheduleNext](w, w.Want(putSchedule(w, catalog.SchedulePut{ID: "s", Agent: "general", Input: "Do it.", Cron: "* * * * *"}), intents.OK)).Next
	w.Clock.Move(time.Minute)
	row := func(u catalog.User) {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &u}), intents.OK)
	}
	for _, x := range []struct {
		user  catalog.User
		words string
	}{
		{catalog.User{UserID: "ana", Roles: []string{"approver"}}, "gives agents:run:general"},
		{catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}, "not there any more"},
	} {
		row(x.user)
		a := w.Do(fire(w, "p"+x.words[:3], "s", due, nil))
		refused(t, a, intents.RBACForbidden, x.words)
		if a.Position == nil {
			t.Errorf("%s: no record", x.words)
		}
	}
	row(catalog.User{UserID: "ana", Roles: []string{"user"}})
	w.Want(w.Do(fire(w, "fired", "s", due, nil)), intents.OK)
}

// TestScheduleErased: the text of a schedule can be erased once the schedule is deleted, and the
// state stays the same.
func TestScheduleErased(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	a := w.Want(putSchedule(w, catalog.SchedulePut{ID: "s", Input: "Call the clinic.", Cron: "* * * * *"}), intents.OK)
	refused(t, w.Erase(a, catalog.ErasesEnvelope), intents.MalformedArgs, "has not ended")
	w.Want(w.Do(routertest.Intent{By: w.Gateway, Type: "schedule.delete", Args: catalog.ScheduleDelete{ID: "s"}}), intents.OK)
	w.Want(w.Erase(a, catalog.ErasesEnvelope), intents.OK)
	w.Restart()
}

// TestOfAgentsAlone: the task of an agent that has the tool requests an action and a schedule, and
// later tasks are informed of both; a planner's step requests neither.
func TestOfAgentsAlone(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := w.BegunAgent("p", "general").Started(1)
	show := task.Intent("action", catalog.Action{Type: "open_page", Payload: json.RawMessage(`{"page":"/orders"}`)})
	show.Ctx.Call = "1.0"
	shown := w.Want(w.Do(show), intents.OK)
	list := task.Intent("schedule.list", struct{}{})
	list.Ctx.Call = "1.2"
	remind := task.Intent("schedule.put", catalog.SchedulePut{Input: "Ask again.", Cron: "0 9 * * *"})
	remind.Ctx.Call = "1.1"
	w.Want(w.Do(remind), intents.OK)
	if a := w.Want(w.Do(list), intents.OK); !strings.Contains(string(a.Details), "Ask again.") || routertest.Result[catalog.ScheduleCount](w, a).Schedules != 1 {
		t.Errorf("%s of %s", a.Details, a.Outcome.Result)
	}
	if again := w.Do(show); again.Code != intents.OK || *again.Position != *shown.Position {
		t.Errorf("the same call is the same intent: %+v", again)
	}
	check := func(w *routertest.World) {
		t.Helper()
		var told []string
		for _, c := range w.Dir.PlanDetails("default", task.Plan.ID, 1, "").Calls {
			told = append(told, c.Call+" "+c.Type+" "+c.Status)
		}
		if diff := cmp.Diff([]string{"1.0 action done", "1.1 schedule.put done", "1.2 schedule.list done"}, told); diff != "" {
			t.Error(diff)
		}
	}
	check(w)
	w = w.Restart()
	check(w)

	step := w.Begun("q", "feed").Started(1)
	refused(t, w.Do(step.Intent("action", catalog.Action{Type: "open_page"})), intents.TaskScope, "no tool")
	refused(t, w.Do(step.Intent("schedule.put", catalog.SchedulePut{Input: "Ask again.", Cron: "0 9 * * *"})), intents.TaskScope, "no tool")
}

// TestReminderOfAnAgent: a plan of a reminder that an agent has put is marked as such for its
// driver and for policy, with every intent of it; a reminder that its user has put is not.
func TestReminderOfAnAgent(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	put := catalog.SchedulePut{ID: "users", Agent: "general", Input: "Water the plants.", Cron: "0 9 * * *"}
	w.Want(putSchedule(w, put), intents.OK)
	task := w.BegunAgent("p", "general").Started(1)
	put.ID = "agents"
	remind := task.Intent("schedule.put", put)
	remind.Ctx.Call = "1.0"
	due := routertest.Result[catalog.ScheduleNext](w, w.Want(w.Do(remind), intents.OK)).Next
	w = w.Restart()
	w.Clock.Move(due.Sub(w.Clock.Now()))
	for schedule, byAgent := range map[string]bool{"users": false, "agents": true} {
		w.Want(w.Do(fire(w, schedule, schedule, due, nil)), intents.OK)
		w = w.Restart()
		p := w.NewPlan(schedule)
		a := w.Want(p.Claim(), intents.OK)
		if v := routertest.Result[catalog.PlanView](w, a); v.ByAgent != byAgent {
			t.Errorf("%s: %+v", schedule, v)
		}
		if f, _, _ := w.Dir.View().PlanInput("default", p.ID); f.ByAgent != byAgent {
			t.Errorf("%s: %+v", schedule, f)
		}
	}
}
