package audit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// rest writes intents of the types of the router that the other scenes do not.
func (w *world) rest() {
	w.Helper()
	p := w.BegunAgent("rest", "general")
	task := p.Started(1)
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: p.ID, Step: 1}}), intents.OK)
	show := task.Intent("action", catalog.Action{Type: "open_page", Payload: json.RawMessage(`{"page":"/orders"}`)})
	show.Ctx.Call = "1.0"
	w.OK(show)
	list := task.Intent("schedule.list", struct{}{})
	list.Ctx.Call = "1.1"
	w.OK(list)
	w.Want(task.Reply("These."), intents.OK)
	w.Want(p.Complete(), intents.OK)
	w.OK(routertest.Intent{By: w.Manager, Type: "usage.report", Args: catalog.UsageReport{Usage: []catalog.Usage{{Agent: "producer", Model: "test:a", Calls: 1, InputTokens: 9, OutputTokens: 1}}}})
	w.OK(routertest.Intent{By: w.Gateway, Type: "schedule.put", Args: catalog.SchedulePut{ID: "s", Input: "Sell.", Cron: "0 * * * *"}})
	w.OK(routertest.Intent{By: w.Gateway, User: "audrey", Roles: []string{"auditor"}, Grant: func(g *intents.Grant) { g.Act.Client = "token" }, Type: catalog.TypeAuditRead, Args: catalog.AuditRead{Subject: catalog.SubjectPlan(p.ID)}})
	w.OK(routertest.Intent{By: w.Gateway, Type: "schedule.delete", Args: catalog.ScheduleDelete{ID: "s"}})
	w.Want(w.Admin(catalog.TypeAdminStop, catalog.AdminStop{Tenant: "default", Agents: []string{"scout"}}), intents.OK)
	w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "acme", Sub: "eve", Before: "2026-11-20T10:00:02Z"}), intents.OK)
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "audrey", Disabled: true, Roles: []string{}}}), intents.OK)
	w.Want(w.Admin("user.erase", catalog.UserErase{Tenant: "default", UserID: "audrey", Reason: "asked for"}), intents.OK)
	source := policies.Embedded()
	raw, err := policies.BuildBundle(policies.Tree{Source: source, Revision: 5})
	w.Must(err)
	w.Want(w.Admin("policy.push", catalog.PolicyPush{Revision: 5, Digest: source.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}), intents.OK)
}

// projects runs a recorder over the whole log, and returns what it has set aside.
func (w *world) projects() []int64 {
	w.Helper()
	d, err := sqlite.OpenDocuments(w.Context(), filepath.Join(w.TempDir(), "documents.db"), storage.NewCheck(storage.DefaultDimension), 0)
	w.Must(err)
	r := recorder.New(w.Journal, d, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx)
		cancel() // where it ended by itself, nothing more is reached
	}()
	if err := r.Reach(ctx, w.Journal.Next()); err != nil {
		w.Fatalf("the recorder has ended: %v", <-done)
	}
	cancel()
	w.Must(<-done)
	w.Must(d.Close())
	return r.SetAside()
}

// sound holds a log to all that reads it: it is projected whole, checked, verified and decided again.
func (w *world) sound() (bundle []byte) {
	w.Helper()
	if aside := w.projects(); len(aside) != 0 {
		w.Errorf("set aside: %v", aside)
	}
	source := w.source(w.Journal)
	h, err := audit.Fsck(w.Context(), source, []intents.Key{w.ledgerKey.VerificationKey()}, nil)
	if w.Must(err); !h.OK {
		w.Errorf("fsck: %v", h.FirstBad)
	}
	var out bytes.Buffer
	_, err = audit.Export(w.Context(), &out, source, audit.Selection{})
	w.Must(err)
	if r := w.verify(out.Bytes(), audit.Options{Trust: w.trust(), Replay: true}); !r.OK {
		w.Errorf("not valid: %v", r.FirstBad)
	}
	return out.Bytes()
}

// TestEveryTypeIsProjected: of each type that the router carries out itself an accepted intent is recorded,
// projected, erased where the type allows it, exported, verified and decided again. A new type fails here
// until a scene writes one.
func TestEveryTypeIsProjected(t *testing.T) {
	w := newWorld(t)
	everything(w)
	w.sound()
	counts := w.eraseAll()
	for _, row := range catalog.Builtin().Rows() {
		n := counts[row.Type]
		if row.Executor == catalog.ExecutorRouter && (n.accepted == 0 && row.Type != state.TypeErase || n.may > 0 && n.erased == 0) {
			t.Errorf("%s: %+v: write one in a scene", row.Type, n)
		}
	}
	w.sound()
	w.eraseUsers()
	w.sound()
}

// TestEraseUsers: a log of everything, of which each user is erased, is sound.
func TestEraseUsers(t *testing.T) {
	w := newWorld(t)
	everything(w)
	w.eraseUsers()
	w.sound()
}

// eraseUsers erases each user of default whose intents have all ended.
func (w *world) eraseUsers() {
	w.Helper()
	users := map[string]bool{}
	for _, r := range w.Records() {
		if r.Kind != storage.KindIntent {
			continue
		}
		o, err := state.ReadIntent(r)
		w.Must(err)
		if o.Tenant == "default" {
			users[o.User] = true
		}
	}
	erased := map[string]bool{}
	for user := range users {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: user, Roles: []string{"user"}, Disabled: true}}), intents.OK)
		erased[user] = w.Admin("user.erase", catalog.UserErase{Tenant: "default", UserID: user, Reason: "asked for"}).Code == intents.OK
	}
	if !erased["ana"] || len(erased) < 3 {
		w.Fatalf("users that were erased: %v", erased)
	}
	for _, r := range w.Records() {
		if r.Kind != storage.KindIntent {
			continue
		}
		o, err := state.ReadIntent(r)
		w.Must(err)
		if o.Tenant == "default" && erased[o.User] && state.Erasable(o) && !o.Erased {
			w.Errorf("intent %d (%s) of %s is there", r.Position, o.Type, o.User)
		}
	}
}

// counted are the accepted intents of a type.
type counted struct{ accepted, may, erased int }

// eraseAll erases what the router has carried out itself, as far as it may, and counts it by type.
func (w *world) eraseAll() map[string]counted {
	w.Helper()
	counts := map[string]counted{}
	for _, r := range w.Records() {
		if r.Kind != storage.KindIntent {
			continue
		}
		o, err := state.ReadIntent(r)
		w.Must(err)
		row, _ := catalog.Builtin().Lookup(o.Type)
		n := counts[o.Type]
		if o.Decision.Verdict == intents.Deny || row.Executor != catalog.ExecutorRouter {
			continue
		}
		n.accepted++
		if state.RetainsArgs(o.Type) && o.Decision.Verdict != intents.Hold { // a held one stays
			n.may++
			a := catalog.RecordErase{Tenant: o.Tenant, IntentID: o.Decision.IntentID, Position: o.Position, Parts: []string{catalog.ErasesEnvelope, catalog.ErasesResult}, Reason: "asked for"}
			if w.Admin("record.erase", a).Code == intents.OK {
				n.erased++
			}
		}
		counts[o.Type] = n
	}
	return counts
}

// everything writes what all scenes write.
func everything(w *world) {
	w.Helper()
	w.live(8)
	w.asks()
	w.approvals()
	w.runs()
	w.rest()
}

// journals is a variable for how many random journals are judged; a few where it is not set.
const journals = "WRIT_JOURNALS"

// randomJournal is what a random walk of a seed has written.
func randomJournal(t *testing.T, seed uint64) *world {
	t.Helper()
	w := newWorld(t)
	w.PrepareWalks()
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range 2 {
		k := w.BeginWalk(fmt.Sprintf("p%d", i), r)
		for range 40 {
			k.Step()
		}
	}
	return w
}

// seeds of the random journals to judge.
func seeds(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv(journals), 10, 64)
	if err != nil {
		return 4
	}
	return n
}

// TestRandomJournals: what a router writes of random transitions, legal and not, is projected whole, verifies, is
// valid, and is the same when it is decided again.
func TestRandomJournals(t *testing.T) {
	for seed := range seeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomJournal(t, seed).sound() })
	}
}
