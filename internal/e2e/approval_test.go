package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// heldTurn is what POST /agent/run answers of a turn that waits for people.
type heldTurn struct {
	PlanID   string       `json:"plan_id"`
	Status   string       `json:"status"`
	Approval bus.Approval `json:"approval"`
}

// holds makes calls of a skill wait for ben or cleo; dora is no approver.
func (s *system) holds(skill string) (ben, cleo, dora person) {
	s.t.Helper()
	ben, cleo, dora = s.addPerson("default", "ben", "user", "approver"), s.addPerson("default", "cleo", "approver"), s.addPerson("default", "dora", "user")
	for who, roles := range map[string][]string{"ben": {"user", "approver"}, "cleo": {"approver"}} {
		s.operate("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: who, Roles: roles}})
	}
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"skills":["` + skill + `"]}`)}})
	return ben, cleo, dora
}

// decide is a person's decision on a held intent.
func (s *system) decide(who person, id, decision, reason string) (catalog.ApproveResult, problem) {
	s.t.Helper()
	var out catalog.ApproveResult
	_, p := s.call(who, http.MethodPost, "/agent/approvals/"+id, map[string]string{"decision": decision, "reason": reason}, &out)
	return out, p
}

// inbox of a person.
func (s *system) inbox(who person) []bus.PendingApproval {
	s.t.Helper()
	var page bus.ApprovalsReply
	if status, p := s.call(who, http.MethodGet, "/agent/approvals", nil, &page); status != http.StatusOK {
		s.t.Fatalf("inbox: HTTP %d %+v", status, p)
	}
	return page.Approvals
}

// planOf a person.
func (s *system) planOf(who person, id string) catalog.PlanView {
	s.t.Helper()
	var v catalog.PlanView
	if status, p := s.call(who, http.MethodGet, "/agent/plans/"+id, nil, &v); status != http.StatusOK {
		s.t.Fatalf("plan: HTTP %d %+v", status, p)
	}
	return v
}

// hold asks a question whose answer needs approval first.
func (s *system) hold(who person, message string) heldTurn {
	s.t.Helper()
	var out heldTurn
	status, p := s.call(who, http.MethodPost, "/agent/run", map[string]string{"message": message}, &out)
	if status != http.StatusAccepted || out.Status != "held" || out.Approval.URL != "/v1/approvals/"+out.Approval.IntentID {
		s.t.Fatalf("HTTP %d %+v %+v", status, p, out)
	}
	return out
}

// streamEnd reads the stream of a plan after an event to its end, which is held or done, and
// returns which, with its id.
func (s *system) streamEnd(who person, plan, after string) (last, id string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/agent/plans/"+plan+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", who.key)
	req.Header.Set("X-User-Id", who.user)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			last = value
		}
	}
	if err := lines.Err(); err != nil {
		s.t.Fatal(err)
	}
	return last, id
}

const openInBerlin = "List the outlets that are open in Berlin"

// TestApprovedTurn: a turn waits for a person, who approves it; it is dispatched again
// automatically, the step's new task gets the result of the held intent, and the user has the
// answer. The skill was called once.
func TestApprovedTurn(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	ben, cleo, dora := s.holds("outlet_list")
	ana := s.as("ana")
	turn := s.hold(ana, openInBerlin)
	if v := s.planOf(ana, turn.PlanID); v.Steps[0].Status != catalog.StepPendingApproval || shop.count("outlet_list") != 0 {
		t.Fatalf("%+v, %d calls", v, shop.count("outlet_list"))
	}
	last, seen := s.streamEnd(ana, turn.PlanID, "")
	if last != "held" {
		t.Fatalf("the stream ends with %s", last)
	}
	id := turn.Approval.IntentID
	for _, who := range []person{ben, cleo} {
		got := s.inbox(who)
		if len(got) != 1 || got[0].IntentID != id || got[0].Type != "skill.call" || !got[0].MayDecide || got[0].Mine || got[0].UserID != "ana" ||
			!strings.Contains(string(got[0].Args), "outlet_list") || got[0].Rules[0].ID != "writ.skill.approval" || got[0].PlanID != turn.PlanID {
			t.Errorf("%s: %+v", who.user, got)
		}
	}
	if got := s.inbox(ana); len(got) != 1 || !got[0].Mine || got[0].MayDecide {
		t.Errorf("her own: %+v", got)
	}
	if got := s.inbox(dora); len(got) != 0 {
		t.Errorf("no approver: %+v", got)
	}
	if _, p := s.decide(dora, id, "approve", ""); p.Code != intents.RBACForbidden {
		t.Errorf("no approver: %+v", p)
	}
	if _, p := s.decide(ana, id, "approve", ""); p.Code != intents.RBACForbidden {
		t.Errorf("her own: %+v", p)
	}
	if _, p := s.decide(ben, id, "reject", ""); p.Code != intents.SchemaInvalid {
		t.Errorf("no reason: %+v", p)
	}
	got, p := s.decide(ben, id, "approve", "")
	if p.Code != "" || got.State != catalog.ApprovalReleased {
		t.Fatalf("%+v %+v", got, p)
	}
	if last, _ := s.streamEnd(ana, turn.PlanID, seen); last != "done" {
		t.Fatalf("the stream that goes on ends with %s", last)
	}
	v := s.planOf(ana, turn.PlanID)
	if !strings.Contains(v.Response, "Mitte") || !strings.Contains(v.Response, "Kreuzberg") || strings.Contains(v.Response, "Wedding") || v.ReplanCount != 0 || v.Epoch != 2 {
		t.Errorf("%+v", v)
	}
	if n := shop.count("outlet_list"); n != 1 {
		t.Errorf("called %d times", n)
	}
	if got := s.inbox(ben); len(got) != 0 {
		t.Errorf("still there: %+v", got)
	}
	if _, p := s.decide(cleo, id, "reject", "too late"); p.Code != intents.MalformedArgs {
		t.Errorf("after the end: %+v", p)
	}
	var trace struct {
		Events []event `json:"events"`
	}
	s.call(ana, http.MethodGet, "/agent/plans/"+turn.PlanID+"/trace", nil, &trace)
	events := map[string]int{}
	for _, e := range trace.Events {
		events[e.Type]++
	}
	if events["approval.requested"] != 1 || events["approval.decided"] != 1 || events["approval.released"] != 1 {
		t.Errorf("events %v", events)
	}
}

// TestFourEyesOfKeyOwners: whoever owns keys that may assert users is one person with those users.
func TestFourEyesOfKeyOwners(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	ben, cleo, _ := s.holds("outlet_list")
	asserting := func(id, user string) person {
		s.operate("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
			ID: id, Hash: intents.Digest([]byte(id)), UserID: "ben", MaxRoles: []string{"user", "approver"}, MayAssertUser: true,
		}})
		return person{key: id, user: user}
	}
	zoe, another := asserting("bens-key", "zoe"), asserting("bens-other-key", "cleo")
	turn := s.hold(zoe, openInBerlin)
	for _, who := range []person{ben, another, {key: zoe.key, user: "cleo"}} {
		if got, p := s.decide(who, turn.Approval.IntentID, "approve", ""); p.Code != intents.RBACForbidden || len(s.inbox(who)) != 0 {
			t.Errorf("%+v: %+v %+v", who, got, p)
		}
	}
	if got, p := s.decide(cleo, turn.Approval.IntentID, "approve", ""); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v %+v", got, p)
	}
	if last, _ := s.streamEnd(zoe, turn.PlanID, ""); last != "done" {
		t.Errorf("the stream ends with %s", last)
	}
}

// TestRejectedTurn: the step continues without it, and its model gets the reason.
func TestRejectedTurn(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	ben, _, _ := s.holds("outlet_list")
	ana := s.as("ana")
	turn := s.hold(ana, openInBerlin)
	_, seen := s.streamEnd(ana, turn.PlanID, "")
	got, p := s.decide(ben, turn.Approval.IntentID, "request_changes", "ask for one city only")
	if p.Code != "" || got.State != catalog.ApprovalEnded || got.Code != intents.ApprovalRejected {
		t.Fatalf("%+v %+v", got, p)
	}
	if last, _ := s.streamEnd(ana, turn.PlanID, seen); last != "done" {
		t.Fatalf("the stream that goes on ends with %s", last)
	}
	v := s.planOf(ana, turn.PlanID)
	if len(v.History) == 0 || v.History[0].Trigger != "insufficient" || !strings.Contains(v.History[0].Reason, "ask for one city only") {
		t.Errorf("%+v", v.History)
	}
	if n := shop.count("outlet_list"); n != 0 {
		t.Errorf("called %d times", n)
	}
}

// TestKillWhileHeld: the machine dies while people think; after it they approve,
// and the turn ends as if nothing had been.
func TestKillWhileHeld(t *testing.T) {
	t.Parallel()
	d := serveDepot(t, nil)
	m := porter("parcel_send")
	x := boot(t, m, d.skills)
	ben, _, _ := x.holds("parcel_send")
	turn := x.hold(x.as("ana"), "send the parcels")
	x.end(syscall.SIGKILL)
	x.start()
	if got := x.inbox(ben); len(got) != 1 || got[0].IntentID != turn.Approval.IntentID {
		t.Fatalf("%+v", got)
	}
	if got, p := x.decide(ben, turn.Approval.IntentID, "approve", ""); got.State != catalog.ApprovalReleased {
		t.Fatalf("%+v %+v", got, p)
	}
	ana := x.as("ana")
	if last, _ := x.streamEnd(ana, turn.PlanID, ""); last != "done" { // the frames of before have died
		t.Fatalf("the stream ends with %s", last)
	}
	if v := x.planOf(ana, turn.PlanID); v.ReplanCount != 0 || v.Revision != 1 {
		t.Errorf("%+v", v)
	}
	if ids := d.ids("parcel_send"); len(ids) != 1 || ids[0] != turn.Approval.IntentID {
		t.Errorf("sent under %v", ids)
	}
}

// TestApprovedAsItWas: a model that words its call otherwise each time does not need another
// approval: the task gets the approved intent.
func TestApprovedAsItWas(t *testing.T) {
	t.Parallel()
	d, m := serveDepot(t, nil), porter("parcel_send")
	var asked atomic.Int64
	decide := m.act
	m.act = func(in working) action {
		if in.Step == 2 && len(in.Calls) == 0 {
			return use("parcel_send", fmt.Sprintf(`{"parcels":["p-%d"]}`, asked.Add(1)))
		}
		return decide(in)
	}
	s := start(t, setup{Model: m, Skills: []string{d.skills}})
	ben, _, _ := s.holds("parcel_send")
	ana := s.as("ana")
	turn := s.hold(ana, "send the parcels")
	_, seen := s.streamEnd(ana, turn.PlanID, "")
	if got, p := s.decide(ben, turn.Approval.IntentID, "approve", ""); got.State != catalog.ApprovalReleased {
		t.Fatalf("%+v %+v", got, p)
	}
	if last, _ := s.streamEnd(ana, turn.PlanID, seen); last != "done" {
		t.Fatalf("the stream that goes on ends with %s", last)
	}
	if ids := d.ids("parcel_send"); len(ids) != 1 || ids[0] != turn.Approval.IntentID || asked.Load() != 1 {
		t.Errorf("sent under %v, the model asked %d times", ids, asked.Load())
	}
	if v := s.planOf(ana, turn.PlanID); v.Status != catalog.PlanComplete || v.ReplanCount != 0 {
		t.Errorf("%+v", v)
	}
}
