package router_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// TestSkillIDs: an intent may name the tool alone if one server's is approved. The record and the
// ticket have the id, and the policy judges by it.
func TestSkillIDs(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, id := range []string{"git.log", "crm.close", "git.close"} {
		w.Pin(id, catalog.Pure)
	}
	p := w.Begun("p1", "log", "close")
	task := p.Started(1)
	at := *w.Want(task.Call("log", `{}`), intents.OK).Position
	var inputs intents.DecisionInputs
	i := slices.IndexFunc(w.Records(), func(r storage.Record) bool { return r.Position == at })
	if err := json.Unmarshal(w.Records()[i].Parts[storage.PartInputs], &inputs); err != nil || inputs.Skill == nil || inputs.Skill.Name != "git.log" {
		t.Errorf("facts %+v, error %v", inputs, err)
	}
	calls := w.Bus.Calls("skill.call")
	if got := calls[len(calls)-1].Ticket.Pins; len(got) != 1 || got[0].Skill != "git.log" {
		t.Errorf("the ticket has %+v", got)
	}
	if a := task.Call("git.log", `{"n":1}`); a.Code != intents.TaskScope {
		t.Errorf("a step that names the tool allows %s", a.Code) // one name in plan and intent
	}
	w.Data("skills_allow", `["crm.log"]`)
	w.Want(task.Call("log", `{"n":2}`), intents.PolicyDenied)
	for i, allowed := range []string{`["git.log"]`, `["log"]`} {
		w.Data("skills_allow", allowed)
		w.Want(task.Call("log", `{"n":`+string(rune('3'+i))+`}`), intents.OK)
	}
	w.Data("skills_allow", "null")
	w.Approval(`{"skills":["git.log"]}`, "ben")
	w.Want(task.Call("log", `{"n":5}`), intents.ApprovalRequired)
}

// TestToolOfTwoServers: an intent that names only the tool is refused, with how to name the skill.
func TestToolOfTwoServers(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("crm.close", catalog.Pure)
	w.Pin("git.close", catalog.Pure)
	task := w.Begun("p1", "close").Started(1)
	a := w.Want(task.Call("close", `{}`), intents.MalformedArgs)
	if a.Pointer != "/intent/args/skill" || !strings.HasSuffix(a.Reason, "write crm.close or git.close") {
		t.Errorf("%s: %s", a.Pointer, a.Reason)
	}
	w.Pin("close", catalog.Pure) // as earlier builds approved
	w.Want(task.Call("close", `{}`), intents.OK)
}
