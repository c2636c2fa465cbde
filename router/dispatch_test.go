package router_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// An intent ends by its executor's report or the lack of one: a once intent is failed only by its
// executor's own report, or if no executor listened.
func TestExecutorAnswers(t *testing.T) {
	done := routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)}))
	for _, c := range []struct {
		name       string
		executor   routertest.Executor
		pure, once intents.Code
	}{
		{"done", done, intents.OK, intents.OK},
		{"failed", routertest.Always(routertest.Failed(intents.ExecutorFailed)), intents.ExecutorFailed, intents.ExecutorFailed},
		{"nobody", nil, intents.DispatchUnavailable, intents.DispatchUnavailable},
		{"indeterminate", routertest.Always(intents.Report{
			Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "cut off",
			Events: []intents.ReportedEvent{routertest.Event("skill.called", `{}`)},
		}), intents.Indeterminate, intents.Indeterminate},
		{"result outside its schema", routertest.Always(routertest.Done(map[string]int{"size": 1})), intents.ExecutorFailed, intents.Indeterminate},
		{"member twice", routertest.Always(intents.Report{Status: intents.Done, Code: intents.OK, Result: []byte(`{"output":{"n":"x","n":2}}`)}), intents.ExecutorFailed, intents.Indeterminate},
		{"member twice in what failed", routertest.Always(intents.Report{Status: intents.Failed, Code: intents.Unauthorized, Result: []byte(`[{"n":"x","n":2}]`)}), intents.ExecutorFailed, intents.Indeterminate},
		{"no result", routertest.Always(intents.Report{Status: intents.Done, Code: intents.OK}), intents.ExecutorFailed, intents.Indeterminate},
		{"no status", routertest.Always(intents.Report{}), intents.ExecutorFailed, intents.Indeterminate},
		{"failed without a code", routertest.Always(intents.Report{Status: intents.Failed}), intents.ExecutorFailed, intents.Indeterminate},
		{"failed and OK", routertest.Always(intents.Report{Status: intents.Failed, Code: intents.OK}), intents.ExecutorFailed, intents.Indeterminate},
	} {
		for effect, want := range map[catalog.Effect]intents.Code{catalog.Pure: c.pure, catalog.Once: c.once} {
			w := routertest.New(t, routertest.Options{})
			task := started(w, effect)
			w.Bus.On("skill.call", c.executor)
			a := task.Call("feed", `{}`)
			if a.Code != want || a.Outcome == nil || a.Receipt == "" {
				t.Errorf("%s, %s: %s (%s), want %s", c.name, effect, a.Code, a.Reason, want)
				continue
			}
			if (a.Code == intents.Indeterminate) != (a.Outcome.Status == intents.StatusIndetermined) || a.Outcome.Retryable && a.Code == intents.Indeterminate {
				t.Errorf("%s, %s: %+v", c.name, effect, a.Outcome)
			}
			if c.name == "indeterminate" && (a.Reason != "cut off" || len(a.Outcome.Events) != 1) {
				t.Errorf("the executor's own word is lost: %+v", a.Outcome)
			}
		}
	}
}

// answerFile is an answer read from a file.
func answerFile(text string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

// A bus that breaks, or answers late or not in JSON, proves nothing about the effect.
func TestBusFails(t *testing.T) {
	for name, c := range map[string]struct {
		reply      func(context.Context) ([]byte, error)
		pure, once intents.Code
	}{
		"breaks":                       {func(context.Context) ([]byte, error) { return nil, errors.New("connection closed") }, intents.ExecutorFailed, intents.Indeterminate},
		"is late":                      {func(context.Context) ([]byte, error) { return nil, context.DeadlineExceeded }, intents.ExecutorTimeout, intents.Indeterminate},
		"says two statuses":            {answerFile(`{"status":"failed","status":"done","code":"OK","result":{"output":1}}`), intents.ExecutorFailed, intents.Indeterminate},
		"says two results":             {answerFile(`{"status":"done","code":"OK","result":{"output":1},"result":{"output":2}}`), intents.ExecutorFailed, intents.Indeterminate},
		"says one in capitals, too":    {answerFile(`{"status":"done","code":"OK","result":{"output":1},"Status":"failed"}`), intents.ExecutorFailed, intents.Indeterminate},
		"says a code in capitals, too": {answerFile(`{"CODE":"EXECUTOR_FAILED","status":"done","code":"OK","result":{"output":1}}`), intents.ExecutorFailed, intents.Indeterminate},
		"says two in other capitals":   {answerFile(`{"CODE":"EXECUTOR_FAILED","Code":"OK","status":"done","result":{"output":1}}`), intents.ExecutorFailed, intents.Indeterminate},
		"says one with a long s, too":  {answerFile(`{"\u017ftatus":"done","status":"failed","code":"OK","result":{"output":1}}`), intents.ExecutorFailed, intents.Indeterminate},
		"is mute":                      {func(context.Context) ([]byte, error) { return nil, nil }, intents.ExecutorFailed, intents.Indeterminate},
	} {
		for effect, want := range map[catalog.Effect]intents.Code{catalog.Pure: c.pure, catalog.Once: c.once} {
			w := routertest.New(t, routertest.Options{})
			task := started(w, effect)
			w.Bus.Fail(c.reply)
			if a := task.Call("feed", `{}`); a.Code != want {
				t.Errorf("%s, %s: %s, want %s", name, effect, a.Code, want)
			}
		}
	}
}

// Reported events are recorded. Events that are not of the intent's executor, or not objects, are
// removed, and the outcome stands.
func TestReportedEventsAreChecked(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)},
		routertest.Event("skill.called", `{"skill_id":"feed"}`), routertest.Event("Not An Event", `{}`), routertest.Event("skill.called", `[1]`), routertest.Event("", `{}`),
		routertest.Event("skill.called", `null`), routertest.Event("approval.decided", `{"decision":"approve","by":"ben"}`), routertest.Event("x.acme.said", `{}`),
		routertest.Event("python_script.executed", `{}`))))
	a := w.Want(task.Call("feed", `{}`), intents.OK)
	if len(a.Outcome.Events) != 1 || a.Outcome.Events[0].Event != "skill.called" {
		t.Errorf("%+v", a.Outcome.Events)
	}
}

// A vendor's executor reports events under its own name and no others.
func TestVendorEvents(t *testing.T) {
	types := extended(t, `{"type":"x.acme.run","title":"Run","capability":"x.acme:run","signed_by":["gateway"],"executor":"x-acme","effect":"pure","args_schema":{"type":"object"},"result_schema":{"type":"object"}}`)
	w := routertest.New(t, routertest.Options{Catalog: types})
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"x.acme:run"}}}), intents.OK)
	w.Bus.On("x.acme.run", routertest.Always(routertest.Done(struct{}{},
		routertest.Event("approval.decided", `{"decision":"approve","by":"ben"}`), routertest.Event("intent.denied", `{}`), routertest.Event("skill.called", `{"skill_id":"pay"}`),
		routertest.Event("x.globex.ran", `{}`), routertest.Event("x.acme.ran", `{"n":1}`))))
	a := w.Want(w.Do(routertest.Intent{By: w.Gateway, Type: "x.acme.run", Args: struct{}{}}), intents.OK)
	if len(a.Outcome.Events) != 1 || a.Outcome.Events[0].Event != "x.acme.ran" {
		t.Errorf("%+v", a.Outcome.Events)
	}
}

// TestVendorTicket: the ticket of a vendor's executor has no link, even if its arguments name an
// answer that had one, no token and no caller's key; the grant is in the signed bytes alone, where
// it reads nothing.
func TestVendorTicket(t *testing.T) {
	types := extended(t, `{"type":"x.acme.run","title":"Run","capability":"x.acme:run","signed_by":["gateway","task"],"executor":"x-acme","effect":"pure","args_schema":{"type":"object"},"result_schema":{"type":"object"}}`)
	w := routertest.New(t, routertest.Options{Catalog: types})
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"*:*"}}}), intents.OK)
	task := started(w, catalog.Pure)
	ref := "cas://" + intents.Digest([]byte("kept"))
	w.Bus.On("artifact.get", routertest.Always(routertest.Done(catalog.ArtifactGetResult{Artifact: ref, SizeBytes: 4, URL: "/agent/artifacts/x?mac=secret", ExpiresAt: w.Clock.Now()})))
	w.Bus.On("x.acme.run", routertest.Always(routertest.Done(struct{}{})))
	linked := w.Want(w.Do(routertest.Intent{By: w.Gateway, Type: "artifact.get", Args: catalog.ArtifactGet{Artifact: ref}, Ctx: task.Intent("", nil).Ctx}), intents.OK)
	if !strings.Contains(string(linked.Outcome.Result), "mac=secret") {
		t.Fatalf("the answer has no link: %s", linked.Outcome.Result)
	}
	o := task.Intent("x.acme.run", map[string]any{"from": linked.IntentID})
	w.OK(o)
	calls := w.Bus.Calls("x.acme.run")
	ticket, err := json.Marshal(calls[len(calls)-1].Ticket)
	w.Must(err)
	if found := regexp.MustCompile(`inputs|mac=|/agent/artifacts|stream_url|eyJ[A-Za-z0-9_-]+\.`).Find(ticket); found != nil {
		t.Errorf("%s in %s", found, ticket)
	}
	own := w.Bus.Calls("artifact.get")[0].Ticket.Key
	if vendors := calls[len(calls)-1].Ticket.Key; own == "" || vendors != "" {
		t.Errorf("an own executor is told the key %q, a vendor's %q", own, vendors)
	}
}

// extended is the catalog with a vendor's row.
func extended(t *testing.T, row string) *catalog.Catalog {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.acme.run.json"), []byte(row), 0o600); err != nil {
		t.Fatal(err)
	}
	types, err := catalog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// The events of a run are recorded even if its result is refused.
func TestEventsOfARefusedResult(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(map[string]int{"size": 1}, routertest.Event("skill.called", `{"skill_id":"feed"}`))))
	a := w.Want(task.Call("feed", `{}`), intents.ExecutorFailed)
	if len(a.Outcome.Events) != 1 {
		t.Errorf("%+v", a.Outcome)
	}
}

// withBlobs is a running task of a world with a blob store.
func withBlobs(t *testing.T) (*routertest.World, *blobdir.Blobs, *routertest.Task) {
	t.Helper()
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := routertest.New(t, routertest.Options{Blobs: blobs})
	return w, blobs, started(w, catalog.Pure)
}

// from names a file of the step, a blob of the tenant, or an intent of the step; the ticket has
// what it resolves to with its digest.
func TestInputs(t *testing.T) {
	w, blobs, task := withBlobs(t)
	scope := storage.Scope{Tenant: "default", Plan: routertest.PlanID("p1"), Revision: 1, Step: 1}
	text := strings.Repeat("x", 60_000)
	file, err := blobs.Put(t.Context(), scope, strings.NewReader(text))
	w.Must(err)
	ref, _, err := blobs.Keep(t.Context(), "default", strings.NewReader("kept"))
	w.Must(err)
	inline := w.Want(task.Call("feed", `{"n":1}`), intents.OK)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Reference: &catalog.Reference{FileID: file.ID, SizeBytes: file.Size, SHA256: file.SHA256, Sample: []string{"x"}}})))
	large := w.Want(task.Call("feed", `{"n":2}`), intents.OK)
	for _, c := range []struct {
		name, from string
		want       intents.Input
	}{
		{"file", file.ID, intents.Input{Pointer: "/input", Ref: file.ID, SHA256: file.SHA256, Size: file.Size}},
		{"blob", ref, intents.Input{Pointer: "/input", Ref: ref, SHA256: strings.TrimPrefix(ref, "cas://"), Size: 4}},
		{"intent", inline.IntentID, intents.Input{Pointer: "/input", Value: []byte(`[{"place":"x"}]`), SHA256: intents.Digest([]byte(`[{"place":"x"}]`)), Size: 15}},
		{"intent with a large result", large.IntentID, intents.Input{Pointer: "/input", Ref: file.ID, SHA256: file.SHA256, Size: file.Size}},
	} {
		w.OK(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)", From: c.from}))
		calls := w.Bus.Calls("exec_python")
		in := calls[len(calls)-1].Ticket.Inputs
		if len(in) != 1 || in[0].Pointer != c.want.Pointer || in[0].Ref != c.want.Ref || in[0].SHA256 != c.want.SHA256 || in[0].Size != c.want.Size || !bytes.Equal(in[0].Value, c.want.Value) {
			t.Errorf("%s: %+v", c.name, in)
		}
	}
	w.OK(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)", Inputs: map[string]string{"r2": inline.IntentID, "r1": file.ID}}))
	calls := w.Bus.Calls("exec_python")
	if in := calls[len(calls)-1].Ticket.Inputs; len(in) != 2 || in[0].Pointer != "/inputs/r1" || in[0].Ref != file.ID || in[1].Pointer != "/inputs/r2" || string(in[1].Value) != `[{"place":"x"}]` {
		t.Errorf("several: %+v", in)
	}
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: fmt.Appendf(nil, "%q", strings.Repeat("x", 49_000))})))
	long, many := w.OK(task.Intent("skill.call", catalog.SkillCall{Skill: "feed", Input: []byte(`{"n":3}`)})), make(map[string]string)
	for i := range 33 { // five long ones fit, and in all 32
		name, code := fmt.Sprintf("r%d", i), intents.OK
		if many[name] = inline.IntentID; i < 6 {
			many[name] = long.IntentID
		}
		switch i {
		case 4, 31:
		case 5:
			code = intents.MalformedArgs
		case 32:
			code = intents.SchemaInvalid
		default:
			continue
		}
		a := w.Want(w.Do(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)", Inputs: many})), code)
		if calls := w.Bus.Calls("exec_python"); code == intents.OK && len(calls[len(calls)-1].Ticket.Inputs) != i+1 {
			t.Errorf("%d inputs arrive of %d", len(calls[len(calls)-1].Ticket.Inputs), i+1)
		}
		if i == 5 {
			if many[name] = inline.IntentID; !strings.Contains(a.Reason, "262144 bytes") {
				t.Errorf("too long: %s", a.Reason)
			}
		}
	}
	w.Want(w.Do(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)", From: file.ID, Inputs: map[string]string{"r1": file.ID}})), intents.SchemaInvalid)
}

// An input that a step may not read is not dispatched: MALFORMED_ARGS, and the key stays taken by
// an intent that failed for good.
func TestInputsOutOfReach(t *testing.T) {
	w, blobs, task := withBlobs(t)
	other, err := blobs.Put(t.Context(), storage.Scope{Tenant: "default", Plan: routertest.PlanID("p1"), Revision: 1, Step: 2}, strings.NewReader("x"))
	w.Must(err)
	foreign, _, err := blobs.Keep(t.Context(), "system", strings.NewReader("theirs"))
	w.Must(err)
	w.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorFailed)))
	failed := w.Want(task.Call("feed", `{"n":1}`), intents.ExecutorFailed)
	elsewhere := w.Begun("p2", "feed").Started(1)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	theirs := w.Want(elsewhere.Call("feed", `{}`), intents.OK)
	for name, from := range map[string]string{
		"file of another step": other.ID, "no such file": "f_00000000000000000000000000000000", "blob of another tenant": foreign,
		"no such intent": intents.Digest([]byte("nothing")), "failed intent": failed.IntentID, "intent of another plan": theirs.IntentID,
	} {
		a := w.Do(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)", From: from}))
		if a.Code != intents.MalformedArgs || a.Outcome == nil || a.Outcome.Retryable {
			t.Errorf("%s: %s %s", name, a.Code, a.Reason)
		}
		both := catalog.ExecPython{Script: "print(1)", Inputs: map[string]string{"a": intents.Digest([]byte("nothing")), "b": from}}
		if a := w.Do(task.Intent("exec_python", both)); a.Code != intents.MalformedArgs {
			t.Errorf("%s among others: %s %s", name, a.Code, a.Reason)
		}
	}
	if n := len(w.Bus.Calls("exec_python")); n != 0 {
		t.Errorf("%d dispatches", n)
	}
}

// An inline result of just under the limit fits into a ticket.
func TestLargestInlineInput(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	big, err := json.Marshal(strings.Repeat("\"", (storage.InlineLimit-4)/2))
	w.Must(err)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: big})))
	a := w.Want(task.Call("feed", `{}`), intents.OK)
	w.OK(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)", From: a.IntentID}))
	if in := w.Bus.Calls("exec_python")[0].Ticket.Inputs; len(in) != 1 || !bytes.Equal(in[0].Value, big) {
		t.Errorf("%d inputs", len(in))
	}
}

// Obligations of the policy reach the executor.
func TestObligations(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Data("max_bytes", `{"*":1000}`)
	task := started(w, catalog.Pure)
	w.Want(task.Call("feed", `{}`), intents.OK)
	got := w.Bus.Calls("skill.call")[0].Ticket.Obligations
	if len(got) != 1 || got[0].Name != "max_bytes" || got[0].Value != 1000.0 {
		t.Errorf("%+v", got)
	}
}

// An intent that is revoked between commit and dispatch is not executed, whatever its effect;
// neither is the same intent again.
func TestRevokedBeforeDispatch(t *testing.T) {
	for name, c := range map[string]struct {
		revoke func(w *routertest.World)
		code   intents.Code
	}{
		"signer":  {func(w *routertest.World) { w.RevokeKey(w.Manager) }, intents.KeyRevoked},
		"gateway": {func(w *routertest.World) { w.RevokeKey(w.Gateway) }, intents.KeyRevoked},
		"grant": {func(w *routertest.World) {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:01Z"}), intents.OK)
		}, intents.GrantInvalid},
		"user": {disable, intents.RBACForbidden},
		"key that left the set": {func(w *routertest.World) {
			w.Want(w.Keys(func(set *intents.KeySet) {
				set.Keys = slices.DeleteFunc(set.Keys, func(k intents.JWK) bool { return k.KID == w.Manager.KID })
			}), intents.OK)
		}, intents.KeyUnknown},
	} {
		for typ, args := range map[string]any{"soul.get": catalog.SoulGet{}, "session.create": catalog.SessionCreate{SessionID: "s1"}} {
			w, j := withHooks(t)
			j.afterCommit = func() { c.revoke(w) }
			a := w.Want(w.Do(routertest.Intent{By: w.Manager, Type: typ, Args: args}), c.code)
			if a.Outcome == nil || a.Outcome.Status != intents.Failed || a.Outcome.Retryable || a.Reason == "" || a.Receipt == "" {
				t.Errorf("%s of %s: %+v", name, typ, a)
			}
			if n := len(w.Bus.Calls(typ)); n != 0 {
				t.Errorf("%s of %s: %d dispatches", name, typ, n)
			}
			noneOpen(w)
		}
	}
}

// An intent with an effect that was certainly not dispatched is failed, not unknown.
func TestRevokedOnceBeforeDispatch(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Once)
	j.afterCommit = func() { w.RevokeKey(w.Gateway) }
	if a := w.Want(task.Call("feed", `{}`), intents.KeyRevoked); a.Outcome.Status != intents.Failed || a.Outcome.Retryable {
		t.Errorf("%+v", a.Outcome)
	}
	if n := len(w.Bus.Calls("skill.call")); n != 0 {
		t.Errorf("%d dispatches", n)
	}
}
