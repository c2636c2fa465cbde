package router_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// snapshot is all that readers see of a directory, for given plans and tasks.
func snapshot(t *testing.T, d *state.State, plans, tasks []string) string {
	t.Helper()
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	v := d.View()
	all := map[string]any{"jwks": d.JWKS(), "tenants": d.Tenants(), "silent": d.Silent(1 << 40), "at": d.LastAt(), "position": v.Position(), "policy": v.PolicyDigest()}
	for _, tenant := range d.Tenants() {
		all["pins "+tenant] = v.Pins(tenant)
		all["data "+tenant] = v.TenantData(tenant)
		caps, _ := v.Capabilities(tenant, []string{"user", "auditor", "approver", "admin"})
		all["caps "+tenant] = caps
	}
	for _, p := range plans {
		all["plan "+p], _ = v.Plan("default", p)
	}
	for _, name := range tasks {
		all["task "+name], _ = v.Task("default/" + name)
	}
	out, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// rebuild applies the records of a journal to a new directory, as a recorder or an auditor does
// that has only the records.
func rebuild(w *routertest.World) *state.State {
	w.Helper()
	d := state.New()
	for _, r := range w.Records() {
		d.Observe(state.EntryOf(r))
	}
	return d
}

// The state is a function of the records: live, from the reopened journal and from the bare records
// it is the same.
func TestRebuildIsDeterministic(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.TwoSteps()
	w.Approval(`{"once":true}`, "zoe")
	w.Pin("pay", catalog.Once)
	p := w.Begun("p2", "pay")
	w.Want(p.Started(1).Call("pay", `{}`), intents.ApprovalRequired)
	w.Want(w.Keys(func(*intents.KeySet) {}), intents.OK)
	plans, tasks := []string{routertest.PlanID("plan_1"), p.ID}, []string{routertest.TaskID("_1"), routertest.TaskID("_2"), routertest.TaskID("_3")}
	live := snapshot(t, w.Dir, plans, tasks)
	if d := cmp.Diff(live, snapshot(t, w.Reopen().Dir, plans, tasks)); d != "" {
		t.Errorf("reopened: %s", d)
	}
	if d := cmp.Diff(live, snapshot(t, rebuild(w), plans, tasks)); d != "" {
		t.Errorf("from the records: %s", d)
	}
}

// A record that cannot be applied makes the router unready, not wrong.
func TestApplyFault(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	_, err := w.Journal.Commit(t.Context(), storage.Commit{ID: "bad", Entries: []storage.Entry{{
		Target: storage.NoPosition, Holder: storage.NoPosition,
		Record: storage.NewRecord(storage.KindControl, w.Clock.Now(), map[string]json.RawMessage{storage.PartControl: json.RawMessage(`[]`)}),
	}}})
	w.Must(err)
	if w.Dir.Err() == nil || w.Router.Ready() {
		t.Errorf("err %v, ready %v", w.Dir.Err(), w.Router.Ready())
	}
	if err := w.Reopen().Router.Start(t.Context()); err == nil {
		t.Error("the next start is ready")
	}
}
