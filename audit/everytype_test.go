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
	"aob.dev/writ/policies"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/router/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// rest writes intents of the types of the router that the other scenes do not.
func (w *world) rest() {
	w.Helper()
	p := w.BegunAgent("rest", "general")
	task := p.Started(1)
	w.Want(w.Do(routertest.Order{By: w.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: p.ID, Step: 1}}), intents.OK)
	show := task.Order("action", catalog.Action{Type: "open_page", Payload: json.RawMessage(`{"page":"/orders"}`)})
	show.Ctx.Call = "1.0"
	w.OK(show)
	w.Want(task.Reply("These."), intents.OK)
	w.Want(p.Complete(), intents.OK)
	w.OK(routertest.Order{By: w.Manager, Type: "usage.report", Args: catalog.UsageReport{Usage: []catalog.Usage{{Agent: "producer", Model: "test:a", Calls: 1, InputTokens: 9, OutputTokens: 1}}}})
	w.OK(routertest.Order{By: w.Gateway, Type: "schedule.put", Args: catalog.SchedulePut{ID: "s", Input: "Sell.", Cron: "0 * * * *"}})
	w.OK(routertest.Order{By: w.Gateway, Type: "schedule.list", Args: struct{}{}})
	w.OK(routertest.Order{By: w.Gateway, Type: "schedule.delete", Args: catalog.ScheduleDelete{ID: "s"}})
	w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "acme", Sub: "eve", Before: "2026-11-20T10:00:02Z"}), intents.OK)
	source := policies.Embedded()
	raw, err := policies.BuildBundle(policies.Tree{Source: source, Revision: 5}, nil)
	w.Must(err)
	w.Want(w.Admin("policy.push", catalog.PolicyPush{Revision: 5, Digest: source.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}), intents.OK)
}

// projects runs a recorder over the whole log, and says what it has set aside.
func (w *world) projects() []int64 {
	w.Helper()
	d, err := sqlite.OpenDocuments(w.Context(), filepath.Join(w.TempDir(), "documents.db"), storage.NewCheck(storage.DefaultDimension))
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
	accepted := map[string][]state.Order{}
	for _, r := range w.Records() {
		if r.Kind != storage.KindOrder {
			continue
		}
		o, err := state.ReadOrder(r)
		w.Must(err)
		if o.Decision.Verdict != intents.Deny {
			accepted[o.Type] = append(accepted[o.Type], o)
		}
	}
	for _, row := range catalog.Builtin().Rows() {
		if row.Executor != catalog.ExecutorRouter {
			continue
		}
		list, mayBe, erased := accepted[row.Type], 0, 0
		for _, o := range list {
			if !state.Keeps(row.Type) || o.Decision.Verdict == intents.Hold { // one that people were asked about stays
				continue
			}
			mayBe++
			a := catalog.RecordErase{Tenant: o.Tenant, IntentID: o.Decision.IntentID, Position: o.Position, Parts: []string{catalog.ErasesOrder, catalog.ErasesResult}, Reason: "asked for"}
			if w.Admin("record.erase", a).Code == intents.OK {
				erased++
			}
		}
		if len(list) == 0 && row.Type != state.TypeErase || mayBe > 0 && erased == 0 {
			t.Errorf("%s: %d accepted, %d erased: write one in a scene", row.Type, len(list), erased)
		}
	}
	w.sound()
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
	w.RandomMoves()
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

// TestRandomJournals: what a router writes of random moves, legal and not, is projected whole, sound and
// valid, and comes out the same when it is decided again.
func TestRandomJournals(t *testing.T) {
	for seed := range seeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomJournal(t, seed).sound() })
	}
}
