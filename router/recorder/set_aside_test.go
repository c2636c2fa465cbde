package recorder_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/storage"
)

// broken returns some records as no router has written them, or as unreadable.
type broken struct {
	storage.Records
	breaks func(r *storage.Record) error
}

func (b broken) Get(ctx context.Context, position int64) (storage.Record, error) {
	r, err := b.Records.Get(ctx, position)
	if err == nil {
		err = b.breaks(&r)
	}
	return r, err
}

func (b broken) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for r, err := range b.Records.Scan(ctx, from) {
			if err == nil {
				_ = b.breaks(&r) // of a scan only the record is broken
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// choosy is a store that does not accept documents of some positions.
type choosy struct {
	storage.Documents
	refuse map[int64]bool
}

func (c *choosy) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	if index == storage.IndexPlans && slices.ContainsFunc(p.Put, func(d storage.Document) bool { return c.refuse[d.Position] }) {
		return &storage.SchemaError{Index: index, Pointer: "/x", Reason: "is not allowed"}
	}
	return c.Documents.Project(ctx, tenant, index, p)
}

// followRecords runs a recorder over records that are not the world's own, until all are projected.
func followRecords(w *routertest.World, records storage.Records, d storage.Documents) *recorder.Recorder {
	w.Helper()
	f := &follower{Recorder: recorder.New(records, d, slog.New(slog.DiscardHandler)), t: w, world: w, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(w.Context())
	f.end = cancel
	go func() { f.done <- f.Run(ctx) }()
	f.caughtUp()
	f.stop()
	return f.Recorder
}

// positionOf returns the position of the first record for which is returns true.
func positionOf(w *routertest.World, is func(r storage.Record) bool) int64 {
	w.Helper()
	for _, r := range w.Records() {
		if is(r) {
			return r.Position
		}
	}
	w.Fatal("no such record")
	return 0
}

// storedAside are the positions that a later process reads as set aside, in order.
func storedAside(t *testing.T, d storage.Documents) (list []int64) {
	t.Helper()
	page, err := d.Search(t.Context(), storage.SystemTenant, storage.IndexEvents, storage.Query{Terms: map[string][]string{"event_type": {recorder.EventAside}}, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range page.Documents {
		list = append(list, doc.Position)
	}
	slices.Sort(list)
	return list
}

// TestRecordIsSetAside: a record that cannot be projected is set aside by position, whatever its
// fault, and the records after it are projected. A later process knows of it, and one that can
// project it removes the mark.
func TestRecordIsSetAside(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.TwoSteps()
	bad := positionOf(w, func(r storage.Record) bool {
		return strings.Contains(string(r.Parts[storage.PartEnvelope]), `"skill.call"`) || r.Kind == storage.KindIntent && r.Position > 20
	})
	for name, breaks := range map[string]func(r *storage.Record){
		"decision": func(r *storage.Record) { r.Parts[storage.PartDecision] = json.RawMessage(`[]`) },
		"intent":   func(r *storage.Record) { delete(r.Parts, storage.PartEnvelope); delete(r.Parts, storage.PartSummary) },
		"facts":    func(r *storage.Record) { r.Parts[storage.PartInputs] = json.RawMessage(`7`) },
		"no parts": func(r *storage.Record) { r.Parts = nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := documents(t)
			records := broken{w.Journal, func(r *storage.Record) error {
				if r.Position == bad {
					r.Parts = maps.Clone(r.Parts)
					breaks(r)
				}
				return nil
			}}
			got := followRecords(w, records, d).SetAside()
			if !slices.Contains(got, bad) {
				t.Errorf("set aside: %v, want %d among them", got, bad)
			}
			if stored := storedAside(t, d); !slices.Equal(stored, got) {
				t.Errorf("stored as set aside: %v, want %v", stored, got)
			}
			if page, err := d.Search(t.Context(), "default", storage.IndexIntents, storage.Query{Sort: "-position", Limit: 1}); err != nil || len(page.Documents) != 1 || page.Documents[0].Position <= bad {
				t.Errorf("nothing behind record %d was projected: %v", bad, err)
			}
			if again := followRecords(w, w.Journal, d).SetAside(); len(again) != 0 {
				t.Errorf("one that can project them leaves aside %v", again)
			}
			if stored := storedAside(t, d); len(stored) != 0 {
				t.Errorf("%v", stored)
			}
		})
	}
}

// TestRefusedDocumentIsSetAside: only the document that its index does not accept is left out: the
// others of the batch are written.
func TestRefusedDocumentIsSetAside(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.TwoSteps()
	p := w.Begun("p2", "rank")
	whole := documents(t)
	followRecords(w, w.Journal, whole)
	last, err := whole.Get(t.Context(), "default", storage.IndexPlans, p.ID)
	w.Must(err)
	d := documents(t)
	got := followRecords(w, w.Journal, &choosy{d, map[int64]bool{last.Position: true}}).SetAside()
	if !slices.Equal(got, []int64{last.Position}) {
		t.Errorf("set aside: %v, want %d", got, last.Position)
	}
	if _, err := d.Get(t.Context(), "default", storage.IndexPlans, routertest.PlanID("plan_1")); err != nil {
		t.Errorf("the other plan of the batch: %v", err)
	}
}

// TestJournalThatCannotBeRead: nothing is set aside if the journal does not answer: that is not a
// fault of a record.
func TestJournalThatCannotBeRead(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed")
	task := p.Started(1)
	call := w.Want(task.Call("feed", `{}`), intents.OK)
	w.Want(p.Read(task.Done()), intents.OK)
	w.Want(p.Complete(), intents.OK)
	w.Want(w.Admin("record.erase", catalog.RecordErase{Tenant: "default", IntentID: call.IntentID, Position: *call.Position, Parts: []string{catalog.ErasesResult}, Reason: "asked for"}), intents.OK)
	down := errors.New("the disk is gone")
	r := recorder.New(broken{w.Journal, func(*storage.Record) error { return down }}, documents(t), slog.New(slog.DiscardHandler))
	if err := r.Run(t.Context()); !errors.Is(err, down) || len(r.SetAside()) != 0 {
		t.Errorf("%v, set aside %v", err, r.SetAside())
	}
}
