package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// dueWorld is a world in which a schedule of a user is due.
func dueWorld(t *testing.T, user string) (*world, catalog.Schedule) {
	t.Helper()
	w := newWorld(t, nil)
	s := catalog.Schedule{
		SchedulePut: catalog.SchedulePut{ID: "daily", Agent: "general", Input: "Water the plants.", TimeZone: "Europe/Oslo", Cron: "0 9 * * *"},
		Tenant:      "acme", User: user, Next: w.clock.Now().UTC().Truncate(time.Second), Roles: []string{"user", "auditor"}, Client: "apikey:k1",
	}
	w.set(func(c *core) { c.due = []catalog.Schedule{s} })
	return w, s
}

// TestFireDue: a due schedule is a plan of its user, under a grant with the current roles and a
// key shared by all gateways; a fired schedule is not fired by dispatches.
func TestFireDue(t *testing.T) {
	w, s := dueWorld(t, "bob")
	w.gateway.resumeSilent(t.Context())
	opened := w.submits("plan.open")
	if len(opened) != 1 {
		t.Fatalf("%d plans", len(opened))
	}
	var a catalog.PlanOpen
	if err := json.Unmarshal(opened[0].Args(), &a); err != nil {
		t.Fatal(err)
	}
	want := catalog.PlanOpen{
		PlanID: a.PlanID, Task: s.Input, Agent: "general", Turn: &catalog.TurnContext{TimeZone: "Europe/Oslo"},
		Schedule: &catalog.Firing{ID: "daily", Due: s.Next},
	}
	if d := cmp.Diff(want, a); d != "" {
		t.Error(d)
	}
	g := opened[0].Grant()
	if g.Subject != "bob" || !cmp.Equal(g.Roles, []string{"user"}) || g.Act.Client != "apikey:k1" || g.For != "" || g.Session == "" {
		t.Errorf("grant %+v", g)
	}
	w.gateway.resumeSilent(t.Context()) // the router still lists it, as for another gateway
	if again := w.submits("plan.open"); len(again) != 2 || again[0].Constraints().IdempotencyKey != again[1].Constraints().IdempotencyKey || again[1].Grant().Session != g.Session {
		t.Errorf("%d plans, or under two keys", len(again))
	}
}

// TestFireOfAnAgent: the request of a reminder set by an agent is labelled as its words.
func TestFireOfAnAgent(t *testing.T) {
	w, s := dueWorld(t, "bob")
	s.ByAgent = true
	w.set(func(c *core) { c.due = []catalog.Schedule{s} })
	w.gateway.resumeSilent(t.Context())
	var a catalog.PlanOpen
	if err := json.Unmarshal(w.submits("plan.open")[0].Args(), &a); err != nil || !strings.HasPrefix(a.Task, "[Reminder, put by an agent") || !strings.HasSuffix(a.Task, "\n"+s.Input) {
		t.Errorf("%q %v", a.Task, err)
	}
}

// TestFireRefused: a time of a schedule whose user has lost the right is submitted without roles,
// so that the record has the refusal, and not tried again; nor is one that waits for approval. An
// undecided one is tried again.
func TestFireRefused(t *testing.T) {
	w, s := dueWorld(t, "eve")
	answers := func(a *intents.Answer) {
		s.Next, s.Put = s.Next.Add(time.Hour), s.Put+1
		w.set(func(c *core) { c.refuse["plan.open"], c.due = a, []catalog.Schedule{s} })
	}
	tried := func(want int) {
		t.Helper()
		w.gateway.resumeSilent(t.Context())
		if n := len(w.submits("plan.open")); n != want {
			t.Errorf("tried %d times, want %d", n, want)
		}
	}
	answers(&intents.Answer{Code: intents.RBACForbidden, Reason: "the user is not there any more"})
	tried(1)
	if g := w.submits("plan.open")[0].Grant(); len(g.Roles) != 0 {
		t.Errorf("roles %v", g.Roles)
	}
	tried(1)
	answers(&intents.Answer{Code: intents.ApprovalRequired, Decision: &intents.Decision{Verdict: intents.Hold}})
	tried(2)
	tried(2)
	answers(&intents.Answer{Code: intents.Overloaded})
	tried(3)
	tried(4)
	w.set(func(c *core) { delete(c.refuse, "plan.open") })
	tried(5)
	if w.gateway.unfired.Len() != 0 {
		t.Error("what was fired is remembered as unfired")
	}
}

// TestFailedSchedule: a schedule that is permanently refused is tried once, whatever its times,
// and is listed as failed until it is put again.
func TestFailedSchedule(t *testing.T) {
	w, s := dueWorld(t, "ana")
	tried := func(want int) {
		t.Helper()
		w.gateway.resumeSilent(t.Context())
		if n := len(w.submits("plan.open")); n != want {
			t.Errorf("tried %d times, want %d", n, want)
		}
	}
	listed := func(want intents.Code) {
		t.Helper()
		w.set(func(c *core) { c.schedules = []catalog.Schedule{{SchedulePut: s.SchedulePut, Next: s.Next}} })
		var got catalog.ScheduleList
		w.call(http.MethodGet, "/agent/schedules", "", nil, &got)
		if len(got.Schedules) != 1 || got.Schedules[0].Failed != want {
			t.Errorf("listed %+v, want failed %q", got.Schedules, want)
		}
	}
	listed("")
	w.set(func(c *core) {
		c.refuse["plan.open"] = &intents.Answer{Code: intents.PolicyDenied, Reason: "no plants"}
	})
	tried(1)
	listed(intents.PolicyDenied)
	later := s
	later.Next = s.Next.Add(time.Minute)
	w.set(func(c *core) { c.due = []catalog.Schedule{later} })
	tried(1)
	listed(intents.PolicyDenied)
	s.Next, s.Put = s.Next.Add(time.Hour), s.Put+1 // it was put again
	listed("")
	w.set(func(c *core) {
		delete(c.refuse, "plan.open")
		c.due = []catalog.Schedule{s}
	})
	tried(2)
	listed("")
}

// TestSchedules: a user puts, lists and deletes schedules over HTTP.
func TestSchedules(t *testing.T) {
	w := newWorld(t, nil)
	next := w.clock.Now().UTC().Truncate(time.Second)
	w.set(func(c *core) {
		c.schedules = []catalog.Schedule{{SchedulePut: catalog.SchedulePut{ID: "s", Input: "Look.", Cron: "0 9 * * *"}, Next: next}}
	})
	var put catalog.ScheduleNext
	w.call(http.MethodPost, "/agent/schedules", `{"input":"Look.","cron":"0 9 * * *","id":"s"}`, nil, &put)
	if put.ID != "s" || !put.Next.Equal(next) {
		t.Errorf("put %+v", put)
	}
	var got struct{ Schedules []catalog.Schedule }
	w.call(http.MethodGet, "/agent/schedules", "", nil, &got)
	if d := cmp.Diff(w.schedules, got.Schedules); d != "" {
		t.Error(d)
	}
	w.refused(http.MethodPost, "/agent/schedules", `{"input":"Look."}`, nil, intents.SchemaInvalid, "")
	var deleted catalog.Ack
	w.call(http.MethodDelete, "/agent/schedules/s", "", nil, &deleted)
	if n := len(w.submits("schedule.delete")); n != 1 {
		t.Errorf("%d deleted", n)
	}
}
