package notices_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/notify"
	"aob.dev/writ/notices"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// desk has approvals, and takes notices unless it is down or refuses that of one.
type desk struct {
	list    []bus.PendingApproval
	down    error
	refuses string
	got     []notify.Message
}

func (d *desk) Name() string { return "desk" }

func (d *desk) Send(_ context.Context, m notify.Message) error {
	if d.down != nil || d.refuses != "" && strings.HasPrefix(m.ID, d.refuses) {
		return errors.Join(d.down, errors.New("not taken"))
	}
	d.got = append(d.got, m)
	return nil
}

func (d *desk) Waiting() []bus.PendingApproval { return d.list }

func (d *desk) Describe(_ context.Context, w bus.PendingApproval) (string, []string, []string, error) {
	return "Refund " + w.IntentID + "\u202e", []string{"ben"}, []string{"payments"}, nil
}

func (d *desk) hold(id string, at time.Time) {
	d.list = append(d.list, bus.PendingApproval{IntentID: id, TenantID: "acme", UserID: "ana", PendingSince: at.Format(time.RFC3339Nano), Deadline: at.Add(time.Hour).Format(time.RFC3339Nano)})
}

func (d *desk) ids() (out []string) {
	for _, m := range d.got {
		out = append(out, m.ID)
	}
	d.got = nil
	return out
}

func (d *desk) tells(t *testing.T, now *time.Time, of notices.For, store durable.Store) *notices.Notices {
	t.Helper()
	return &notices.Notices{
		Receiver: d, For: of, Approvals: d, Store: store, Base: "https://writ.example", Now: func() time.Time { return *now },
		Log: slog.New(slog.DiscardHandler), Failing: func(string, error) {},
	}
}

// TestNotices: an approval is told at once and at half of its time, once each, over restarts. A
// receiver that is down, or that refuses one notice, gets the others and, in the end, all.
func TestNotices(t *testing.T) {
	now, d := noon, &desk{}
	store := durable.Document(filepath.Join(t.TempDir(), "told.json"))
	n := d.tells(t, &now, notices.For{}, store)
	look := func(what string, fails bool, want ...string) {
		t.Helper()
		if err := n.Look(t.Context()); (err != nil) != fails {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, d.ids()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	look("nothing waits", false)
	d.hold("a", now)
	look("at once", false, "a.1")
	look("again", false)
	n = d.tells(t, &now, notices.For{}, store)
	look("after a restart", false)
	d.hold("b", now)
	d.down = errors.New("down")
	look("it is down", true)
	d.hold("c", now)
	look("another while it is down", true)
	d.down, d.refuses = nil, "b"
	now = now.Add(time.Minute)
	look("it refuses one", true)
	look("and takes others", false, "c.1")
	d.refuses = ""
	now = now.Add(time.Minute)
	look("all", false, "b.1")
	now = noon.Add(31 * time.Minute)
	look("half-time", false, "a.2", "b.2", "c.2")
	look("once", false)
	d.list = d.list[1:]
	look("one was decided", false)
	if doc, err := store.Get(t.Context()); err != nil || string(doc) != `{"b":2,"c":2}` {
		t.Errorf("%s, %v", doc, err)
	}
	d.hold("late", noon.Add(-50*time.Minute))
	look("a round that was missed is not made up", false, "late.2")
}

// TestFor: a receiver is told of what its people may decide.
func TestFor(t *testing.T) {
	for name, x := range map[string]struct {
		of   notices.For
		told int
	}{
		"all": {notices.For{}, 1}, "its user": {notices.For{Users: []string{"ben"}}, 1}, "another user": {notices.For{Users: []string{"cleo"}}, 0},
		"its role": {notices.For{Roles: []string{"payments"}}, 1}, "another role": {notices.For{Roles: []string{"sales"}}, 0},
		"its tenant": {notices.For{Tenant: "acme", Users: []string{"ben"}}, 1}, "another tenant": {notices.For{Tenant: "other"}, 0},
	} {
		now, d := noon, &desk{}
		d.hold("a", now)
		n := d.tells(t, &now, x.of, durable.Document(filepath.Join(t.TempDir(), "told.json")))
		if err := n.Look(t.Context()); err != nil || len(d.got) != x.told {
			t.Errorf("%s: told %d, %v", name, len(d.got), err)
		}
		if got := x.of.Reaches("acme", "ben", []string{"payments"}); got != (x.told > 0) {
			t.Errorf("%s: reaches ben: %v", name, got)
		}
	}
}

// TestMessage: a notice is a sentence, who asked and a link. Hidden letters are shown.
func TestMessage(t *testing.T) {
	now, d := noon, &desk{}
	d.hold("a", now)
	if err := d.tells(t, &now, notices.For{}, durable.Document(filepath.Join(t.TempDir(), "told.json"))).Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := notify.Message{
		ID: "a.1", Title: "Waits for your approval: Refund a<U+202E>", Text: "Asked by ana, tenant acme. It ends at 13:00 UTC, 24 November 2026 if nobody decides.", Link: "https://writ.example/console/approvals/a",
		Data: notices.Notice{ID: "a.1", Round: 1, Tenant: "acme", IntentID: "a", User: "ana", Summary: "Refund a<U+202E>", PendingSince: "2026-11-24T12:00:00Z", Deadline: "2026-11-24T13:00:00Z", URL: "https://writ.example/console/approvals/a"},
	}
	if diff := cmp.Diff(want, d.got[0]); diff != "" {
		t.Error(diff)
	}
}

// TestFailing: a receiver that does not take notices is reported, and that it takes them again.
func TestFailing(t *testing.T) {
	now, d := noon, &desk{down: errors.New("down")}
	d.hold("a", now)
	n := d.tells(t, &now, notices.For{}, durable.Document(filepath.Join(t.TempDir(), "told.json")))
	ctx, end := context.WithCancel(t.Context())
	var said []string
	n.Failing = func(receiver string, err error) { // on the goroutine of Run
		said = append(said, fmt.Sprint(receiver, ": ", err))
		if d.down, now = nil, now.Add(time.Minute); err == nil {
			end()
		}
	}
	if err := n.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"desk: down\nnot taken", "desk: <nil>"}, said); diff != "" || len(d.got) != 1 {
		t.Errorf("told %d\n%s", len(d.got), diff)
	}
}

// writes counts those of a store.
type writes struct {
	durable.Store
	n int
}

func (w *writes) Put(ctx context.Context, doc []byte) error {
	w.n++
	return w.Store.Put(ctx, doc)
}

// TestMany: many notices are few writes; approvals that are gone are forgotten while a receiver fails;
// and a document that says nothing is none.
func TestMany(t *testing.T) {
	now, d := noon, &desk{}
	store := &writes{Store: durable.Document(filepath.Join(t.TempDir(), "told.json"))}
	if err := store.Put(t.Context(), []byte("null")); err != nil {
		t.Fatal(err)
	}
	n := d.tells(t, &now, notices.For{}, store)
	for i := range 1000 {
		d.hold(fmt.Sprint(i), now)
	}
	if err := n.Look(t.Context()); err != nil || len(d.ids()) != 1000 || store.n > 30 {
		t.Errorf("%d writes, %v", store.n, err)
	}
	d.list, d.down = nil, errors.New("down")
	for i := range 100 {
		d.list = nil
		d.hold(fmt.Sprint("new", i), now)
		if err := n.Look(t.Context()); err == nil {
			t.Fatal("it takes what it does not take")
		}
	}
	if n.Later() != 1 {
		t.Errorf("%d attempts are remembered", n.Later())
	}
}

// killed is a store whose process dies instead of the write.
type killed struct {
	durable.Store
	dies bool
}

func (k *killed) Put(ctx context.Context, doc []byte) error {
	if k.dies {
		return errors.New("killed")
	}
	return k.Store.Put(ctx, doc)
}

// TestKills: over fifty kills between a notice and its write, each approval is told once or twice.
func TestKills(t *testing.T) {
	now, d := noon, &desk{}
	store := &killed{Store: durable.Document(filepath.Join(t.TempDir(), "told.json"))}
	told := map[string]int{}
	for kill := range 50 {
		d.hold(strings.Repeat("x", kill+1), now)
		store.dies = true
		if err := d.tells(t, &now, notices.For{}, store).Look(t.Context()); err == nil {
			t.Fatal("it was not killed")
		}
		store.dies = false
		if err := d.tells(t, &now, notices.For{}, store).Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range d.ids() {
			told[id]++
		}
	}
	if counts := slices.Sorted(maps.Values(told)); len(counts) != 50 || counts[0] != 2 || counts[49] != 2 {
		t.Errorf("told %v", counts)
	}
}
