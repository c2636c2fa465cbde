package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/policies"
)

// TestOnePersonAlone: on a new writ of this machine the first user approves what they asked for, by
// the key for a person alone; no program gets in by that key, and the second approver ends it.
func TestOnePersonAlone(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	local := s.as("local")
	key, err := datadir.PersonKey(s.dir)
	if inCell() { // others reach a cell
		if err == nil {
			t.Error("a cell has a key for one person")
		}
		return
	}
	if err != nil || s.node.Alone() != "local" {
		t.Fatalf("alone: %q, %v", s.node.Alone(), err)
	}
	me := person{key: key}
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"skills":["outlet_list"]}`)}})
	for _, who := range []string{"local", "ana"} { // asked by themselves, and for somebody who may not approve
		turn := s.hold(s.as(who), openInBerlin)
		if got := s.inbox(local); who == "local" && (len(got) != 1 || got[0].MayDecide || !got[0].Rules[0].InPerson || got[0].Rules[0].FourEyes) {
			t.Errorf("by the key of programs: %+v", got)
		}
		if got, p := s.decide(local, turn.Approval.IntentID, "approve", ""); p.Code != intents.RBACForbidden || !strings.Contains(p.Detail, "in person") {
			t.Errorf("by the key of programs: %+v %+v", got, p)
		}
		if got := s.inbox(me); len(got) != 1 || !got[0].MayDecide {
			t.Errorf("in person: %+v", got)
		}
		if got, p := s.decide(me, turn.Approval.IntentID, "approve", ""); got.State != catalog.ApprovalReleased {
			t.Errorf("in person: %+v %+v", got, p)
		}
		if last, _ := s.streamEnd(s.as(who), turn.PlanID, ""); last != "done" {
			t.Errorf("the stream ends with %s", last)
		}
	}
	for path, body := range map[string]any{
		"/mcp":                 map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"},
		"/v1/chat/completions": map[string]any{"model": "general", "messages": []any{}},
		"/v1/responses":        map[string]any{"model": "general", "input": "hello"},
	} {
		req, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if status, _, text := s.knock(me, http.MethodPost, path, json.RawMessage(req)); status != http.StatusForbidden || !strings.Contains(text, "writ apikey create") {
			t.Errorf("%s: HTTP %d %s", path, status, text)
		}
	}

	before := s.hold(local, openInBerlin)
	ben := s.addPerson("default", "ben", "user", "approver")
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"user", "approver"}}})
	if s.node.Alone() != "" {
		t.Error("still alone beside ben")
	}
	after := s.hold(local, openInBerlin)
	if got, p := s.decide(me, after.Approval.IntentID, "approve", ""); p.Code != intents.RBACForbidden {
		t.Errorf("no longer alone: %+v %+v", got, p)
	}
	if got, p := s.decide(me, before.Approval.IntentID, "approve", ""); got.State != catalog.ApprovalPending { // decided again, by four eyes
		t.Errorf("no longer alone: %+v %+v", got, p)
	}
	for _, x := range []struct {
		who      person
		turn     heldTurn
		decision string
	}{{me, before, "reject"}, {ben, after, "approve"}} {
		if got, p := s.decide(x.who, x.turn.Approval.IntentID, x.decision, "asked again"); p.Code != "" || got.State == catalog.ApprovalPending {
			t.Errorf("%+v %+v", got, p)
		}
		if last, _ := s.streamEnd(local, x.turn.PlanID, ""); last != "done" {
			t.Errorf("the stream ends with %s", last)
		}
	}
}

const benLooks = `package writ.ext.shop

# METADATA
# title: Outlets
# description: Ben looks at it.
# custom:
#   id: ext.outlets
hold contains {"id": "ext.outlets", "reason": "Ben looks at it.", "approvers": ["ben"]} if {
	input.intent.type == "skill.call"
	endswith(input.intent.args.skill, ".outlet_list")
}
`

// TestStandingApproval: a yes "also for this session" lets later calls through that are the same but for
// what may differ, until it is used up or withdrawn; others wait.
func TestStandingApproval(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}, Extensions: []policies.Extension{{Name: "shop", Dir: registryDir(t, map[string]string{"shop.rego": benLooks})}}})
	ben := s.addPerson("default", "ben", "user", "approver")
	ana := s.as("ana")
	ana.session = "first"
	turn := s.hold(ana, openInBerlin)
	var released catalog.ApproveResult
	also := map[string]any{"decision": "approve", "also": map[string]any{"uses": 2, "within_sec": 600}}
	if _, p := s.call(ben, http.MethodPost, "/agent/approvals/"+turn.Approval.IntentID, also, &released); released.State != catalog.ApprovalReleased {
		t.Fatalf("%+v %+v", released, p)
	}
	if last, _ := s.streamEnd(ana, turn.PlanID, ""); last != "done" {
		t.Fatalf("the stream ends with %s", last)
	}
	if got := s.ask(ana, openInBerlin); got.Status != "complete" || !strings.Contains(got.Response, "Mitte") {
		t.Errorf("the same call in the session: %+v", got)
	}
	through := slices.DeleteFunc(s.intents(""), func(o intent) bool { return o.Standing == "" })
	if len(through) != 1 || through[0].Standing != turn.Approval.IntentID {
		t.Fatalf("let through: %+v", through)
	}
	s.at(person{key: ana.key, user: "ana"}).open("/console/intents/"+through[0].Decision.IntentID).shows(t, "let through", "standing approval", turn.Approval.IntentID)
	elsewhere := ana
	elsewhere.session = "second"
	other := s.hold(elsewhere, openInBerlin)
	var page bus.ApprovalsReply
	s.call(ben, http.MethodGet, "/agent/approvals", nil, &page)
	if len(page.Standing) != 1 || page.Standing[0].Left != 1 || page.Standing[0].SessionID != "first" || page.Standing[0].By != "ben" {
		t.Errorf("standing: %+v", page.Standing)
	}
	if got, p := s.decide(ben, turn.Approval.IntentID, "withdraw", ""); p.Code != "" || got.State != catalog.ApprovalEnded {
		t.Errorf("withdrawn: %+v %+v", got, p)
	}
	if got, p := s.decide(ben, turn.Approval.IntentID, "withdraw", ""); p.Code != intents.MalformedArgs {
		t.Errorf("withdrawn twice: %+v %+v", got, p)
	}
	again := s.hold(ana, openInBerlin)
	for who, held := range map[person]heldTurn{ana: again, elsewhere: other} {
		if got, p := s.decide(ben, held.Approval.IntentID, "reject", "enough"); p.Code != "" {
			t.Errorf("%+v %+v", got, p)
		}
		if last, _ := s.streamEnd(who, held.PlanID, ""); last != "done" {
			t.Errorf("the stream ends with %s", last)
		}
	}
	if n := shop.count("outlet_list"); n != 2 {
		t.Errorf("called %d times", n)
	}
}
