package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestEditedTurn: an approver edits a call; the next task submits the edited call, and writ dies
// while that waits; another approver lets it go on, by the step's number, and it alone is sent.
func TestEditedTurn(t *testing.T) {
	t.Parallel()
	d := serveDepot(t, nil)
	x := boot(t, porter("parcel_send"), d.skills)
	ben, cleo, _ := x.holds("parcel_send")
	ana := x.as("ana")
	turn := x.hold(ana, "send the parcels")
	_, seen := x.streamEnd(ana, turn.PlanID, "")
	held := x.inbox(ben)[0]
	var args catalog.SkillCall
	if err := json.Unmarshal(held.Args, &args); err != nil {
		t.Fatal(err)
	}
	args.Input = json.RawMessage(`{"parcels":["p-edited"]}`)
	var got catalog.ApproveResult
	edit := map[string]any{"decision": "edit", "args": args}
	if _, p := x.call(ben, http.MethodPost, "/agent/approvals/"+held.IntentID, edit, &got); got.State != catalog.ApprovalEnded || got.Code != intents.Changed {
		t.Fatalf("%+v %+v", got, p)
	}
	if last, _ := x.streamEnd(ana, turn.PlanID, seen); last != "held" {
		t.Fatalf("the stream that goes on ends with %s", last)
	}
	x.end(syscall.SIGKILL)
	x.start()
	waits := x.inbox(cleo)
	if len(waits) != 1 || waits[0].IntentID == held.IntentID || !strings.Contains(string(waits[0].Args), "p-edited") {
		t.Fatalf("%+v", waits)
	}
	node := map[string]any{"intent_id": waits[0].IntentID, "run_id": turn.PlanID, "node_id": "2", "decision": "approve"}
	if _, p := x.call(ben, http.MethodPost, "/agent/approvals", node, nil); p.Code != intents.RBACForbidden { // four eyes
		t.Errorf("%+v", p)
	}
	if _, p := x.call(cleo, http.MethodPost, "/agent/approvals", node, &got); got.State != catalog.ApprovalReleased || got.IntentID != waits[0].IntentID {
		t.Fatalf("%+v %+v", got, p)
	}
	if last, _ := x.streamEnd(x.as("ana"), turn.PlanID, ""); last != "done" {
		t.Fatalf("the stream ends with %s", last)
	}
	if ids := d.ids("parcel_send"); len(ids) != 1 || ids[0] != waits[0].IntentID {
		t.Errorf("sent under %v", ids)
	}
}
