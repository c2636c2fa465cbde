package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

var heldID = intents.Digest([]byte("held"))

// approvals answers as the router's list of pending approvals: one intent, which its reader may
// decide.
func (c *core) approvals(g intents.Grant, q url.Values) (any, error) {
	if q.Get("limit") == "101" {
		return nil, intents.Refuse(intents.SchemaInvalid, "/limit", "must be 1 to 100")
	}
	out := bus.ApprovalsReply{Approvals: []bus.PendingApproval{}}
	if q.Get("mine") != "true" && (q.Get("intent_id") == "" || q.Get("intent_id") == heldID) {
		out.Approvals = append(out.Approvals, bus.PendingApproval{
			IntentID: heldID, TenantID: g.Tenant, UserID: "ana", Type: "skill.call", Args: json.RawMessage(cmp.Or(c.heldArgs, "{}")), Rules: []bus.PendingRule{},
			Approved: []bus.Vote{}, PendingSince: intents.FormatTime(c.now()), Deadline: intents.FormatTime(c.now()), MayDecide: true, URL: bus.ApprovalURL(heldID),
		})
	}
	return out, nil
}

func TestInbox(t *testing.T) {
	w := newWorld(t, nil)
	var page bus.ApprovalsReply
	if resp := w.call("GET", "/agent/approvals?limit=5&type=skill.call", "", nil, &page); resp.StatusCode != http.StatusOK || len(page.Approvals) != 1 || page.Approvals[0].IntentID != heldID {
		t.Errorf("%d %+v", resp.StatusCode, page)
	}
	if resp := w.call("GET", "/agent/approvals?mine=true", "", nil, &page); resp.StatusCode != http.StatusOK || len(page.Approvals) != 0 {
		t.Errorf("%d %+v", resp.StatusCode, page)
	}
	var one bus.PendingApproval
	if resp := w.call("GET", "/agent/approvals/"+heldID, "", nil, &one); resp.StatusCode != http.StatusOK || !one.MayDecide {
		t.Errorf("%d %+v", resp.StatusCode, one)
	}
	for path, want := range map[string]intents.Code{
		"/agent/approvals/" + intents.Digest(nil): intents.NotFound, "/agent/approvals?limit=101": intents.SchemaInvalid,
	} {
		var p struct {
			Code intents.Code `json:"code"`
		}
		if resp := w.call("GET", path, "", nil, &p); p.Code != want || resp.StatusCode != want.Info().Status {
			t.Errorf("%s: %d %+v", path, resp.StatusCode, p)
		}
	}
}

// A person's decision is an intent of its own, under a fresh grant of that person: claims in the
// body about others must match the key.
func TestDecide(t *testing.T) {
	w := newWorld(t, nil)
	result := catalog.ApproveResult{IntentID: heldID, State: catalog.ApprovalReleased, Approved: []string{"ben"}}
	w.set(func(c *core) {
		c.refuse["hitl.approve"] = &intents.Answer{
			IntentID: "sha256:1", Code: intents.OK, Decision: &intents.Decision{Verdict: intents.Allow, Code: intents.OK},
			Outcome: &intents.Outcome{Status: intents.Done, Code: intents.OK, Result: marshal(t, result)},
		}
	})
	var got catalog.ApproveResult
	if resp := w.call("POST", "/agent/approvals/"+heldID, `{"decision":"approve"}`, nil, &got); resp.StatusCode != http.StatusOK || got.State != catalog.ApprovalReleased {
		t.Errorf("%d %+v", resp.StatusCode, got)
	}
	signed := w.submits("hitl.approve")
	if len(signed) != 1 {
		t.Fatalf("%d intents", len(signed))
	}
	var args catalog.Approve
	if err := json.Unmarshal(signed[0].Args(), &args); err != nil || args.IntentID != heldID || args.Decision != "approve" {
		t.Errorf("%+v %v", args, err)
	}
	if g := signed[0].Grant(); g == nil || g.For != "" || g.IssuedAt != w.clock.Now().Unix() || len(g.Act.AMR) == 0 {
		t.Errorf("grant %+v", g)
	}
	for path, body := range map[string]string{
		"/agent/approvals/" + heldID: `{"decision":"reject"}`, // no reason
		"/agent/approvals/x":         `{"decision":"approve"}`,
	} {
		if resp := w.call("POST", path, body, nil, nil); resp.StatusCode < 400 {
			t.Errorf("%s %s: %d", path, body, resp.StatusCode)
		}
	}
	if n := len(w.submits("hitl.approve")); n != 1 {
		t.Errorf("%d intents", n)
	}
}

// TestDecideNode: a decision at a node names the intent that was shown there. The run and the
// node alone release nothing that waits there by now.
func TestDecideNode(t *testing.T) {
	w := newWorld(t, nil)
	for name, body := range map[string]string{
		"no intent":           `{"run_id":"r1","node_id":"n1","decision":"approve"}`,
		"an empty one":        `{"intent_id":"","run_id":"r1","node_id":"n1","decision":"approve"}`,
		"one that is no id":   `{"intent_id":"*","run_id":"r1","node_id":"n1","decision":"approve"}`,
		"a part of an id":     `{"intent_id":"` + heldID[:20] + `","run_id":"r1","node_id":"n1","decision":"approve"}`,
		"an edit of anything": `{"run_id":"r1","node_id":"n1","decision":"edit","args":{}}`,
	} {
		if p := w.refused("POST", "/agent/approvals", body, nil, intents.SchemaInvalid, "/intent_id"); !strings.Contains(p.Hint, "GET /agent/approvals") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if n := len(w.submits("hitl.approve")); n != 0 {
		t.Fatalf("%d intents", n)
	}
	w.call("POST", "/agent/approvals", `{"intent_id":"`+heldID+`","run_id":"r1","node_id":"n1","decision":"approve"}`, nil, nil)
	var args catalog.Approve
	if all := w.submits("hitl.approve"); len(all) != 1 || json.Unmarshal(all[0].Args(), &args) != nil || args.IntentID != heldID || args.RunID != "r1" || args.NodeID != "n1" {
		t.Errorf("%+v", args)
	}
}
