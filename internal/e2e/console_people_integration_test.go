//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/policies"
	"aob.dev/writ/state/agents"
)

// people runs testdata/people.mjs, which drives Chromium, and decodes what it found.
func people(t *testing.T, given, found any) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", copied(t, "people.mjs"), marshalled(given))
	cmd.Stderr = t.Output()
	raw, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, found); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}

// tillNotes has notes wait for ben alone, not under four eyes: a yes of his may stand for later ones.
const tillNotes = `package writ.ext.till

# METADATA
# title: Notes
# description: Ben reads them first.
# custom:
#   id: ext.notes
hold contains {"id": "ext.notes", "reason": "Ben reads them first.", "approvers": ["ben"]} if {
	input.intent.type == "skill.call"
	endswith(input.intent.args.skill, ".note")
}
`

// payer is a puppet that takes no for an answer.
type payer struct{ puppet }

func (p payer) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	if req.Agent != agents.Planner && req.Agent != agents.Executor && len(exchanges(req)) > 0 {
		return &model.Response{Text: "Done.", Model: p.Name()}, nil
	}
	return p.puppet.Respond(ctx, req, on)
}

// till is a node with a till that pays, whose payments wait for people, and the people.
func till(t *testing.T) (s *system, ana, ben, cleo person, hold func(who person, tool string, input map[string]any) heldTurn, server *skillServer) {
	t.Helper()
	yes, no := true, false
	pay := skill{name: "pay", about: "Pays.", input: `{"type":"object","properties":{"payee":{"type":"string"},"amount":{"type":"integer"}},"required":["payee","amount"]}`, hints: &mcp.ToolAnnotation{DestructiveHint: &yes, ReadOnlyHint: &no}, do: always(map[string]any{"paid": true})}
	wire, note := pay, skill{name: "note", about: "Takes a note.", input: `{"type":"object","properties":{"text":{"type":"string"},"topic":{"type":"string"}}}`, do: always(map[string]any{"noted": true})}
	wire.name = "wire"
	skills := []skill{pay, wire, note}
	for i := range 6 {
		skills = append(skills, skill{name: fmt.Sprintf("list_%d", i), about: "Lists.", do: always([]int{})})
	}
	server = serveSkills(t, skills...)
	s = start(t, setup{
		Limits: node.Limits{Requests: -1}, Model: payer{newPuppet()}, Skills: []string{"name=till -- " + server.url},
		Extensions: []policies.Extension{{Name: "till", Dir: registryDir(t, map[string]string{"till.rego": tillNotes})}},
	})
	ana = s.addPerson("default", "ana", "user")
	ben, cleo = s.addPerson("default", "ben", "user", "auditor", "approver", "admin"), s.addPerson("default", "cleo", "user", "approver", "admin")
	for _, who := range []string{"ben", "cleo"} {
		s.operate("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: who, Roles: []string{"user", "auditor", "approver", "admin"}}})
	}
	hold = func(who person, tool string, input map[string]any) heldTurn {
		t.Helper()
		var out heldTurn
		if _, p := s.call(who, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": "CALL till." + tool + " " + marshalled(input) + " NOW"}, &out); out.Approval.IntentID == "" {
			t.Fatalf("%s %v: %+v %+v", tool, input, p, out)
		}
		return out
	}
	return s, ana, ben, cleo, hold, server
}

// TestIntegrationConsoleTen: a script that reads what the console shows, and knows no ids, decides ten
// prepared approvals right, each with one click, or with a reason and a click; what would pay somebody else
// under a like name, and what its server has changed, are visible. An edit is not approved by the button
// that said Approve, with scripts and without.
func TestIntegrationConsoleTen(t *testing.T) {
	t.Parallel()
	s, ana, ben, cleo, hold, server := till(t)
	type item struct {
		tool    string
		input   map[string]any
		approve bool
	}
	payment := func(payee string, amount int) map[string]any {
		return map[string]any{"payee": payee, "amount": amount}
	}
	items := []item{
		{"pay", payment("Acme Ltd", 120), true},
		{"pay", payment("Nordlicht GmbH", 80), true},
		{"pay", payment("Acme Ltd", 9000), false},
		{"pay", payment("\u0410cme Ltd", 120), false},            // one letter is Cyrillic
		{"pay", payment("\u0410\u0441\u043c\u0435", 120), false}, // all are
		{"pay", payment("Acme\u200b Ltd", 120), false},           // a hidden character
		{"pay", payment("Acme Ltd\nNordlicht GmbH", 120), false}, // two lines
		{"pay", payment("Stranger Inc", 10), false},              // nobody that it knows
		{"note", map[string]any{"text": "The till is short."}, true},
		{"wire", payment("Acme Ltd", 120), false}, // its server has changed it since
	}
	ids := make([]string, len(items))
	for i, x := range items {
		ids[i] = hold(ana, x.tool, x.input).Approval.IntentID
	}
	s.pinAnother("wire")
	var got struct {
		Decided []struct {
			Text, Said string
			Actions    int
		}
		Trap, Unscripted string
	}
	trap := hold(ana, "pay", payment("Acme Ltd", 121)).Approval.IntentID
	untouched := hold(ana, "pay", payment("Acme Ltd", 122)).Approval.IntentID
	people(t, map[string]any{"what": "ten", "url": s.url, "key": ben.key, "trap": trap, "untouched": untouched}, &got)
	approved := 0
	for i, x := range items {
		var a intents.Answer
		if _, p := s.call(ben, http.MethodGet, "/v1/intents/"+ids[i], nil, &a); p.Code != "" {
			t.Fatalf("%+v", p)
		}
		if released := a.Code != intents.ApprovalRejected; released != x.approve || a.Code == intents.ApprovalRequired {
			t.Errorf("%v ends as %s", x.input, a.Code)
		}
		if x.approve {
			approved++
		}
	}
	for _, d := range got.Decided {
		if d.Actions > 2 || d.Said == "approve" && d.Actions != 1 {
			t.Errorf("%d actions for %s of %q", d.Actions, d.Said, d.Text)
		}
	}
	if len(got.Decided) != len(items) || approved != 3 {
		t.Errorf("decided %+v", got.Decided)
	}
	if !strings.Contains(got.Trap, "You said edit") {
		t.Errorf("edited, then the main button: %q", got.Trap)
	}
	if !strings.Contains(got.Unscripted, "this button sends no edit") {
		t.Errorf("edited, then Approve, without scripts: %q", got.Unscripted)
	}
	s.await("the edited version waits, and the other", func() bool { return len(s.inbox(cleo)) == 2 })
	s.await("what was approved is carried out", func() bool { return server.count("pay") == 2 && server.count("note") == 1 })
	if n := server.count("wire"); n != 0 {
		t.Errorf("wired %d times", n)
	}
}

// TestIntegrationConsoleFlows: people log in, find, approve, reject, edit, approve for a session and withdraw
// that, stop and let go on, approve a changed manifest, cancel and log out by mouse, by keyboard and by touch,
// on a desktop and on a phone, light and dark. axe-core finds nothing in any state, and every target has 44
// pixels. What one approver is asked shows at another one; pages that are only open leave no record.
func TestIntegrationConsoleFlows(t *testing.T) {
	t.Parallel()
	s, ana, ben, cleo, hold, _ := till(t)
	type flow struct{ Key, Approve, Reject, Edit, Session, Skill, Plan string }
	var flows []flow
	for i := range 6 {
		who := s.addPerson("default", fmt.Sprintf("asker_%d", i), "user") // of one person, few calls may wait at once
		pay := func(amount int) heldTurn {
			return hold(who, "pay", map[string]any{"payee": "Acme Ltd", "amount": 10*i + amount})
		}
		edit := pay(3)
		flows = append(flows, flow{
			Key: who.key, Approve: pay(1).Approval.IntentID, Reject: pay(2).Approval.IntentID, Edit: edit.Approval.IntentID, Plan: edit.PlanID,
			Session: hold(who, "note", map[string]any{"text": "short", "topic": fmt.Sprint(i)}).Approval.IntentID,
		})
	}
	for i := range flows {
		flows[i].Skill = s.pinAnother(fmt.Sprintf("list_%d", i))
	}
	given := map[string]any{"what": "flows", "url": s.url, "key": ben.key, "ana": ana.key, "cleo": cleo.key, "flows": flows, "pictures": os.Getenv("WRIT_CONSOLE_PICTURES")}
	if !inCell() { // others reach a cell
		lone := start(t, setup{Skills: []string{serveShop(t).url}})
		lone.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"skills":["outlet_list"]}`)}})
		key, err := datadir.PersonKey(lone.dir)
		if err != nil {
			t.Fatal(err)
		}
		given["alone"] = map[string]string{"url": lone.url, "key": lone.key, "person": key, "held": lone.hold(lone.as("local"), openInBerlin).Approval.IntentID}
	}
	var got struct {
		Violations, Errors []string
		Looks, Targets     int
		Said               [][]string
		ShownMS            float64
		Order              []string
		Idle               *int64
		Alone              []string
	}
	people(t, given, &got)
	for _, v := range append(got.Violations, got.Errors...) {
		t.Error(v)
	}
	want := []string{"You said approve of ", "You said reject of ", "You said edit of ", "You said approve of ", "Later calls wait for people again.", "You stopped agent composer.", "Everything goes on.", "You approved till.list_", "You cancelled the plan."}
	for i, said := range got.Said {
		if len(said) != len(want) {
			t.Fatalf("flow %d: %q", i, said)
		}
		for j := range want {
			if !strings.Contains(said[j], want[j]) {
				t.Errorf("flow %d: %q, not %q", i, said[j], want[j])
			}
		}
	}
	if len(got.Said) != 6 || got.Looks < 20 || got.Targets < 500 {
		t.Errorf("%d flows, axe looked %d times, %d targets", len(got.Said), got.Looks, got.Targets)
	}
	if strings.Join(got.Order, ", ") != "asked, shown, gone" || got.ShownMS > 10_000 {
		t.Errorf("at another approver: %v, after %.0f ms", got.Order, got.ShownMS)
	}
	t.Logf("a new approval shows at another approver after %.0f ms", got.ShownMS)
	if got.Idle == nil || *got.Idle != 0 {
		t.Errorf("pages that are only open leave records: %v", got.Idle)
	}
	if !inCell() && (len(got.Alone) != 2 || !strings.Contains(got.Alone[0], "keys/person_key") || !strings.Contains(got.Alone[1], "You said approve of ")) {
		t.Errorf("one person alone: %q", got.Alone)
	}
}
