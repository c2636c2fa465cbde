package router_test

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// referencePatch is the one of the protocol's example.
const referencePatch = `{
  "patch_version": "0.1",
  "add_nodes": [
    {"id":"upload_to_s3","type":"function","fn":"s3_upload","inputs":{"bucket":"acme","key_template":"uploads/${run_id}.bin"}},
    {"id":"notify_email","type":"function","fn":"email_send","inputs":{"to":"ops@acme.com","subject":"Upload OK ${run_id}"}},
    {"id":"notify_slack","type":"function","fn":"slack_post","inputs":{"channel_alias":"incidents","text":"Upload FAILED ${run_id}"}}
  ],
  "add_edges": [
    {"from":"CURRENT_NODE","to":"upload_to_s3"},
    {"from":"upload_to_s3","to":"notify_email","condition":"${nodes.upload_to_s3.outputs.success == true}"},
    {"from":"upload_to_s3","to":"notify_slack","condition":"${nodes.upload_to_s3.outputs.success == false}"}
  ],
  "justification": "Notify stakeholders after file upload"
}`

const sideFlow = `
workflow_id: side
version: 1.0.0
description: Two nodes side by side, and one after them.
nodes:
  - {id: one, type: function, fn: crm.parse}
  - {id: two, type: function, fn: crm.parse}
  - {id: last, type: function, fn: crm.parse}
edges:
  - {from: one, to: last}
  - {from: two, to: last}
`

// patchWorld has a run of which two nodes run, and the skills of the reference patch with these
// effects.
func patchWorld(t *testing.T, effects ...catalog.Effect) (*routertest.Run, *routertest.Node, *routertest.Node) {
	t.Helper()
	w := flowWorld(t)
	for i, skill := range []string{"aws.s3_upload", "mail.email_send", "chat.slack_post"} {
		w.Pin(skill, effects[i%len(effects)])
	}
	w.Approval(`{"once":false}`, "ben")
	w.PushAgents(2, map[string]string{"workflows/side": sideFlow})
	r := w.BegunRun("r1", "side", `{}`)
	return r, r.Begin("one"), r.Begin("two")
}

// TestReferencePatch: the patch of the protocol's example is accepted unchanged while two nodes
// run. Both continue, the nodes that it added follow, and the run is complete with them.
func TestReferencePatch(t *testing.T) {
	r, one, two := patchWorld(t, catalog.Pure)
	a := r.Want(r.Do(r.PatchIntent("two", referencePatch)), intents.OK)
	if v := r.View(); v.Revision != 2 || v.PlanDigest != a.IntentID || len(v.Steps) != 6 || v.Steps[3].ID != "upload_to_s3" || v.Steps[3].Step != 4 {
		t.Fatalf("%+v", v)
	}
	r.Patched(a)
	if got := next(one.Done()); got != "" {
		t.Fatal(got)
	}
	if got := next(two.Done()); got != "run 3;run 4;" {
		t.Fatal(got)
	}
	up := r.Begin("upload_to_s3")
	if got := string(up.NodeIntent.Args); got != `{"input":{"bucket":"acme","key_template":"uploads/`+r.ID+`.bin"},"skill":"s3_upload"}` {
		t.Fatal(got)
	}
	if got := next(up.Done()); got != "run 3;run 5;skip 6;" {
		t.Fatal(got)
	}
	r.Want(r.Do(r.SkipIntent("notify_slack")), intents.OK)
	refused(t, r.Close("complete"), intents.MalformedArgs, "complete when each node")
	r.Begin("notify_email").Done()
	r.Begin("last").Done()
	r.Want(r.Close("complete"), intents.OK)
	refused(t, r.Do(r.PatchIntent("two", strings.Replace(referencePatch, "Notify", "Tell", 1))), intents.MalformedArgs, "the run is complete")
}

// TestPatchIsHeld: a patch that adds a node with an effect, or changes what leads to an earlier
// node, needs approval. People approve what was judged: the node that ran then, the skills as they
// were then.
func TestPatchIsHeld(t *testing.T) {
	say := func(r *routertest.Run, held *intents.Answer, decision string) *intents.Answer {
		return r.Do(routertest.Intent{
			By: r.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Ctx: intents.Context{TurnID: rand.Text()},
			Args: catalog.Approve{IntentID: held.IntentID, Decision: decision, Reason: "notify the owner, too"},
		})
	}
	t.Run("released", func(t *testing.T) {
		r, one, two := patchWorld(t, catalog.Once, catalog.Idempotent)
		one.Done()
		held := r.Want(r.Do(r.PatchIntent("", referencePatch)), intents.ApprovalRequired)
		two.Done() // the node that CURRENT_NODE stands for no longer runs
		r.Want(say(r, held, catalog.DecisionApprove), intents.OK)
		if v := r.View(); len(v.Steps) != 6 || v.PlanDigest != held.IntentID {
			t.Fatalf("%+v", v)
		}
		r.Patched(held)
		if got := next(r.Claimed()); got != "run 3;run 4;" {
			t.Error(got)
		}
	})
	t.Run("another pin", func(t *testing.T) {
		r, _, _ := patchWorld(t, catalog.Pure, catalog.Idempotent)
		held := r.Want(r.Do(r.PatchIntent("two", referencePatch)), intents.ApprovalRequired)
		r.Pin("aws.s3_upload", catalog.Once)
		r.Want(say(r, held, catalog.DecisionApprove), intents.OK)
		if v := r.View(); len(v.Steps) != 3 || v.Revision != 1 {
			t.Errorf("released although a skill has another effect: %+v", v)
		}
	})
	t.Run("rewired", func(t *testing.T) {
		r, _, _ := patchWorld(t, catalog.Pure)
		r.Want(r.Do(r.PatchIntent("two", `{"patch_version":"0.1","add_nodes":[],"add_edges":[],"remove_edges":[{"from":"CURRENT_NODE","to":"last"}],"justification":"j"}`)), intents.ApprovalRequired)
	})
	t.Run("written together", func(t *testing.T) { // people want changes, and the author's next patch names the first
		r, _, _ := patchWorld(t, catalog.Once)
		held := r.Want(r.Do(r.PatchIntent("two", referencePatch)), intents.ApprovalRequired)
		r.Want(say(r, held, catalog.DecisionRequestChanges), intents.OK)
		o := r.PatchIntent("two", strings.Replace(referencePatch, "ops@acme.com", "owner@acme.com", 1))
		o.Ctx.Cause = held.IntentID
		again := r.Want(r.Do(o), intents.ApprovalRequired)
		r.Want(say(r, again, catalog.DecisionApprove), intents.OK)
		if v := r.View(); len(v.Steps) != 6 || v.PlanDigest != again.IntentID {
			t.Errorf("%+v", v)
		}
	})
}

// TestPatchRefused: patches by others, of other runs, and against the state's data.
func TestPatchRefused(t *testing.T) {
	r, one, _ := patchWorld(t, catalog.Pure)
	if a := r.Do(r.PatchIntent("", referencePatch)); a.Pointer != "/intent/args/patch/add_edges/0/from" {
		t.Errorf("%s %s", a.Pointer, a.Reason)
	}
	refused(t, r.Do(r.PatchIntent("", referencePatch)), intents.MalformedArgs, "2 nodes run")
	other := r.PatchIntent("two", referencePatch)
	other.User = "eve"
	refused(t, r.Do(other), intents.TaskScope, "no such run of this user")
	within := r.PatchIntent("two", referencePatch)
	within.Ctx.PlanID = r.ID
	refused(t, r.Do(within), intents.TaskScope, "no intent of a plan")
	none := r.PatchIntent("two", referencePatch)
	none.Args = catalog.GraphPatch{RunID: "plan_none", Patch: []byte(referencePatch)}
	refused(t, r.Do(none), intents.TaskScope, "no such run of this user")
	by := r.PatchIntent("two", referencePatch)
	by.By = r.Workflow
	refused(t, r.Do(by), intents.KeyRole, "may not sign")
	refused(t, r.Do(r.PatchIntent("two", strings.Replace(referencePatch, "s3_upload", "s3_uplaod", 1))), intents.MalformedArgs, "no approved skill")
	refused(t, r.Do(r.PatchIntent("two", strings.Replace(referencePatch, `"type":"function","fn":"s3_upload","inputs":{`, `"type":"agent","fn":"nobody","inputs":{"task":"t",`, 1))), intents.MalformedArgs, "needs the agent nobody")
	refused(t, r.Do(r.PatchIntent("two", strings.Replace(referencePatch, "0.1", "0.2", 1))), intents.SchemaInvalid, "")
	refused(t, r.Do(r.PatchIntent("two", strings.Replace(referencePatch, "justification", "why", 1))), intents.SchemaInvalid, "")
	plain := r.Begun("p", "crm.parse")
	r2 := *r
	r2.Plan = plain
	refused(t, r.Do(r2.PatchIntent("", referencePatch)), intents.TaskScope, "no such run of this user")
	one.Ends("failed", "")
	refused(t, r.Do(r.PatchIntent("two", referencePatch)), intents.MalformedArgs, "can only be closed as failed")
}

// TestPatchErased: once the run has ended the intent of a patch can be erased. Its effects stand.
func TestPatchErased(t *testing.T) {
	r, one, two := patchWorld(t, catalog.Pure)
	a := r.Want(r.Do(r.PatchIntent("two", strings.Replace(referencePatch, "Upload OK ${run_id}", "OK ${nodes.upload_to_s3.outputs.id}", 1))), intents.OK)
	r.Patched(a)
	one.Done()
	two.Done()
	r.Begin("last").Done()
	r.Begin("upload_to_s3").Done()
	if got := string(r.Begin("notify_email").NodeIntent.Args); !strings.Contains(got, `"OK x7"`) {
		t.Fatal(got)
	}
	refused(t, r.Erase(a, "envelope"), intents.MalformedArgs, "plan has not ended")
	r.Want(r.Close("failed"), intents.OK)
	r.Want(r.Erase(a, "envelope"), intents.OK)
	r.Reopen() // which applies the records again, and compares
}

// TestPatchedApproval: a patch may ask people. Their answer is the node's output.
func TestPatchedApproval(t *testing.T) {
	r, one, two := patchWorld(t, catalog.Pure)
	yes := func(held *intents.Answer) {
		r.Want(r.Do(routertest.Intent{
			By: r.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Ctx: intents.Context{TurnID: rand.Text()},
			Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove},
		}), intents.OK)
	}
	held := r.Want(r.Do(r.PatchIntent("two", `{"patch_version":"0.1","add_nodes":[{"id":"ask","type":"approval","inputs":{"title":"Shall ${run_id} go on?"}}],"add_edges":[{"from":"CURRENT_NODE","to":"ask"}],"justification":"j"}`)), intents.ApprovalRequired)
	yes(held)
	r.Patched(held)
	one.Done()
	two.Done()
	ask := r.Begin("ask")
	asked := r.Want(ask.Sign(), intents.ApprovalRequired)
	edit := routertest.Intent{
		By: r.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Ctx: intents.Context{TurnID: rand.Text()},
		Args: catalog.Approve{IntentID: asked.IntentID, Decision: catalog.DecisionEdit, Args: json.RawMessage(`{"title":"Shall it stop?"}`)},
	}
	if a := r.Want(r.Do(edit), intents.MalformedArgs); !strings.Contains(a.Reason, "patch the run") {
		t.Errorf("an edit of a node: %s", a.Reason)
	}
	yes(asked)
	r.Want(ask.Ends("done", asked.IntentID), intents.OK)
	r.Begin("last").Done()
	r.Want(r.Close("complete"), intents.OK)
}

// TestPlansOfOthersLookMissing: whoever may not oversee another user's plan or run gets the same
// answer about it as about one that does not exist, for every intent that names one.
func TestPlansOfOthersLookMissing(t *testing.T) {
	r, _, _ := patchWorld(t, catalog.Pure)
	const none = "plan_000mx0zw1j647tf2kobh4agiwf"
	patch := func(id string) routertest.Intent {
		o := r.PatchIntent("two", referencePatch)
		o.Args = catalog.GraphPatch{RunID: id, Patch: []byte(referencePatch)}
		return o
	}
	about := func(typ string, within bool) func(id string) routertest.Intent {
		return func(id string) routertest.Intent {
			o := routertest.Intent{By: r.Gateway, Type: typ}
			switch typ {
			case "cancel":
				o.Args = catalog.Cancel{PlanID: id, Reason: "enough"}
			case "plan.get":
				o.Args = catalog.PlanGet{PlanID: id}
				o.By = r.Manager
			case "run.replay":
				o.Args = catalog.RunReplay{RunID: id, FromNode: "parse", Mode: catalog.ReplayFreeze}
			}
			if within {
				o.Ctx.PlanID = id
			}
			return o
		}
	}
	for name, intentOf := range map[string]func(id string) routertest.Intent{
		"patch": patch, "replay": about("run.replay", false), "cancel": about("cancel", false), "cancel in its context": about("cancel", true), "read in its context": about("plan.get", true),
	} {
		ask := func(id string) intents.Answer {
			o := intentOf(id)
			o.User, o.Key = "eve", catalog.RandomKey()
			a := *r.Do(o)
			return intents.Answer{Code: a.Code, Pointer: a.Pointer, Reason: a.Reason, Hint: a.Hint}
		}
		theirs, missing := ask(r.ID), ask(none)
		if d := cmp.Diff(missing, theirs); d != "" || theirs.Code != intents.TaskScope {
			t.Errorf("%s: %+v (-missing +another user's)\n%s", name, theirs, d)
		}
	}
}
