package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// The documents made from an intent before its erasure equal those made from its records
// afterwards, and have nothing of what was erased, even if the plan has left the state by then.
func TestErased(t *testing.T) {
	t.Run("of a closed plan", func(t *testing.T) { testErased(t, func(*routertest.World) {}) })
	t.Run("while its plan leaves", func(t *testing.T) { testErased(t, func(w *routertest.World) { w.Clock.Move(state.PlanKept) }) })
	t.Run("of a plan that has left", func(t *testing.T) {
		testErased(t, func(w *routertest.World) {
			w.Clock.Move(state.PlanKept)
			w.Want(w.NewPlan("later").Open(), intents.OK)
			if _, ok := w.Dir.View().Plan("default", routertest.PlanID("p2")); ok {
				t.Fatal("the plan is still there")
			}
		})
	})
}

func testErased(t *testing.T, closed func(w *routertest.World)) {
	t.Helper()
	live := documents(t)
	w, f := woken(t, live)
	w.Pin("pay", catalog.Once)
	p := w.Begun("p2", "pay")
	report := routertest.Done(catalog.SkillCallResult{Output: []byte(`"anas-reply"`)}, routertest.Event("skill.called", `{"skill_id":"pay","input_size_bytes":4}`))
	report.Lines = []intents.Line{{At: w.Clock.Now(), Level: intents.LevelInfo, Source: "pay:stderr", Text: "anas-line"}}
	w.Bus.On("skill.call", routertest.Always(report))
	task := p.Started(1)
	call := w.Want(task.Call("pay", `{"to":"anas-name"}`), intents.OK)
	w.Bus.On("plan.get", routertest.Always(routertest.Done(catalog.PlanGetResult{Plan: p.View()})))
	read := w.OK(routertest.Intent{By: w.Manager, Type: "plan.get", Args: catalog.PlanGet{PlanID: routertest.PlanID("p2")}})
	denied := w.Want(task.Call("other", `{"to":"anas-name"}`), intents.TaskScope)
	w.Want(p.Claim(), intents.OK) // interrupted: the plan tells of the call
	w.Want(p.Fail(), intents.OK)
	closed(w)
	f.caughtUp()
	shown := func(d storage.Documents) bool {
		for _, docs := range dump(t, d, "default", "system") {
			for _, doc := range docs {
				if bytes.Contains(doc.Body, []byte("anas-")) {
					return true
				}
			}
		}
		return false
	}
	if !shown(live) {
		t.Fatal("the test looks in the wrong place")
	}
	for _, a := range []*intents.Answer{call, read, denied} {
		parts := []string{catalog.ErasesEnvelope, catalog.ErasesResult}
		if a == denied {
			parts = parts[:1]
		}
		w.Want(w.Admin("record.erase", catalog.RecordErase{Tenant: "default", IntentID: a.IntentID, Position: *a.Position, Parts: parts, Reason: "asked for"}), intents.OK)
	}
	f.caughtUp()
	f.stop()
	again := documents(t)
	g := follow(t, w, again)
	g.caughtUp()
	g.stop()
	if d := cmp.Diff(dump(t, live, "default", "system"), dump(t, again, "default", "system")); d != "" {
		t.Error(d)
	}
	if shown(live) {
		t.Error("what was erased is still in a document")
	}
}

// The texts of a plan leave its document and its events with its intents, both while the recorder
// runs and when it reads the records again.
func TestErasedPlan(t *testing.T) {
	for i, how := range []string{"complete", "failed", "cancel"} {
		live := documents(t)
		w, f := woken(t, live)
		_, endOther := w.Tell("p0", "bens-word", how)
		endOther()
		plan, end := w.Tell("p1", "anas-word", how)
		end()
		if i > 0 { // the plan has left the state by then
			w.Clock.Move(state.PlanKept)
			w.Want(w.NewPlan("later").Open(), intents.OK)
		}
		f.caughtUp()
		shown := func(word string) (n int) {
			for _, docs := range dump(t, live, "default", "system") {
				for _, doc := range docs {
					n += bytes.Count(doc.Body, []byte(word))
				}
			}
			return n
		}
		bens := shown("bens-word")
		if shown("anas-word") < 8 || bens < 8 {
			t.Fatalf("the test looks in the wrong place: %d", shown("anas-word"))
		}
		events := len(dump(t, live, "default")["default/"+storage.IndexEvents])
		plan.Erase()
		f.caughtUp()
		f.stop()
		if n := shown("anas-word"); n > 0 {
			t.Errorf("%s: erased, and shown %d times", how, n)
		}
		if n := shown("bens-word"); n != bens {
			t.Errorf("%s: what nobody erased is shown %d times, before %d times", how, n, bens)
		}
		if n := len(dump(t, live, "default")["default/"+storage.IndexEvents]); n < events {
			t.Errorf("%s: of %d events %d are left", how, events, n)
		}
		page, err := live.Search(t.Context(), "default", storage.IndexPlans, storage.Query{Text: "anas-word"})
		w.Must(err)
		for _, doc := range page.Documents {
			if doc.ID == plan.ID {
				t.Errorf("%s: found by what was erased", how)
			}
		}
		again := documents(t)
		g := follow(t, w, again)
		g.caughtUp()
		g.stop()
		if d := cmp.Diff(dump(t, live, "default", "system"), dump(t, again, "default", "system")); d != "" {
			t.Errorf("%s: %s", how, d)
		}
	}
}

// cutOff is a store that fails once it has removed an event.
type cutOff struct {
	storage.Documents
	dead atomic.Bool
	died chan struct{}
}

func (d *cutOff) Delete(ctx context.Context, tenant, index, id string) error {
	if d.dead.Load() {
		return storage.ErrUnavailable
	}
	d.dead.Store(true)
	defer close(d.died)
	return d.Documents.Delete(ctx, tenant, index, id)
}

func (d *cutOff) Create(ctx context.Context, tenant, index string, docs ...storage.Document) (int, error) {
	if d.dead.Load() {
		return 0, storage.ErrUnavailable
	}
	return d.Documents.Create(ctx, tenant, index, docs...)
}

func (d *cutOff) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	if d.dead.Load() {
		return storage.ErrUnavailable
	}
	return d.Documents.Project(ctx, tenant, index, p)
}

// A recorder that dies while an event without its reason replaces another loses no event.
func TestErasedPlanCrash(t *testing.T) {
	live := documents(t)
	cut := &cutOff{Documents: live, died: make(chan struct{})}
	w := routertest.New(t, routertest.Options{})
	plan, end := w.Tell("p1", "anas-word", "failed")
	end()
	for range 300 { // more than a recorder goes back at its start
		w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}})
	}
	f := follow(t, w, live)
	f.caughtUp()
	f.stop()
	plan.Erase()
	f = follow(t, w, cut)
	<-cut.died
	f.stop()
	for _, store := range []storage.Documents{live, documents(t)} {
		f = follow(t, w, store)
		f.caughtUp()
		f.stop()
		if store != live {
			if d := cmp.Diff(dump(t, live, "default", "system"), dump(t, store, "default", "system")); d != "" {
				t.Error(d)
			}
		}
	}
}

// journalIn opens the journal of a directory.
func journalIn(t *testing.T, dir string) func(storage.Observer) routertest.Journal {
	t.Helper()
	return func(observe storage.Observer) routertest.Journal {
		j, err := sqlite.OpenJournal(t.Context(), filepath.Join(dir, "journal"), sqlite.JournalOptions{Observer: observe})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
}

// filesWith are the files below a directory whose bytes have a word, in any case.
func filesWith(t *testing.T, dir, word string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // it was renamed
			return nil
		}
		if bytes.Contains(bytes.ToLower(raw), []byte(word)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// TestErasedLeavesNoBytes: no file of journal, keys and documents has a word of what was erased, not
// in free pages, text indexes or write-ahead logs either.
func TestErasedLeavesNoBytes(t *testing.T) {
	dir := t.TempDir()
	live := documentsIn(t, dir)
	w, f := wokenOn(t, live, routertest.Options{Open: journalIn(t, dir)})
	_, endOther := w.Tell("p0", "bellasword", "complete")
	endOther()
	plan, end := w.Tell("p1", "annasword", "complete")
	end()
	f.caughtUp()
	files := func(word string) []string { return filesWith(t, dir, word) }
	if len(files("annasword")) == 0 {
		t.Fatal("the test looks in the wrong place")
	}
	plan.Erase()
	f.caughtUp()
	if err := clock.Every(t.Context(), 10*time.Millisecond, func() bool { return len(files("annasword")) == 0 }); err != nil {
		t.Errorf("still in %v", files("annasword"))
	}
	if len(files("bellasword")) == 0 {
		t.Error("another's words are gone")
	}
	f.stop()
}

// TestErasedUser: a user.erase removes the user's documents in every index that has words, both while
// the recorder runs and when it reads the records again, and none of others, of other tenants, or of
// later intents.
func TestErasedUser(t *testing.T) {
	data := t.TempDir()
	live := documentsIn(t, data)
	w, f := woken(t, live)
	_, end := w.Tell("p1", "anas-word", "complete")
	end()
	f.caughtUp()
	before := w.Journal.Next()
	all := func(d storage.Documents) {
		putWords(w, d, "default", "ana", "mine", before-1)
		putWords(w, d, "default", "ben", "bens", before-1)
		putWords(w, d, "acme", "ana", "elsewhere", before-1)
		putWords(w, d, "default", "ana", "later", 1<<40)
	}
	all(live)
	backup := filepath.Join(t.TempDir(), "backup.db")
	keys, err := sqlite.OpenUserKeys(data)
	w.Must(err)
	c, err := sqlite.EncryptDocuments(t.Context(), filepath.Join(data, "documents.db"), backup, keys)
	w.Must(err)
	_, err = c.Begin(t.Context())
	w.Must(err)
	w.Must(c.Finish(t.Context()))
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}}), intents.OK)
	w.Want(w.Admin("user.erase", catalog.UserErase{Tenant: "default", UserID: "ana", Reason: "asked for"}), intents.OK)
	f.caughtUp()
	f.stop()
	keys, err = sqlite.OpenUserKeys(data)
	w.Must(err)
	lost, err := sqlite.DecryptDocuments(t.Context(), backup, filepath.Join(t.TempDir(), "documents.db"), keys)
	if err != nil || len(lost) != 1 || lost[0].Tenant != "default" || lost[0].User != "ana" {
		t.Errorf("a backup from before has lost %+v, %v", lost, err)
	}
	again := documents(t)
	all(again)
	g := follow(t, w, again)
	g.caughtUp()
	g.stop()
	if d := cmp.Diff(dump(t, live, "default", "system", "acme"), dump(t, again, "default", "system", "acme")); d != "" {
		t.Error(d)
	}
	for _, docs := range dump(t, live, "default") {
		for _, doc := range docs {
			if bytes.Contains(doc.Body, []byte("anas-word")) {
				t.Errorf("%s has words: %s", doc.ID, doc.Body)
			}
		}
	}
	onlyMineGone(w, live)
}

// putWords writes a document of a user into each index that others than the recorder write.
func putWords(w *routertest.World, d storage.Documents, tenant, user, id string, position int64) {
	w.Helper()
	at := intents.FormatTime(w.Clock.Now())
	for index, body := range map[string]string{
		storage.IndexMemory:    `{"id":%[1]q,"tenant_id":%[2]q,"user_id":%[3]q,"scope":"user","key":"k","text":"words","created_at":%[4]q}`,
		storage.IndexMoments:   `{"id":%[1]q,"tenant_id":%[2]q,"user_id":%[3]q,"session_id":"s","key":"k","kind":"session_chunk","text":"words","created_at":%[4]q}`,
		storage.IndexSouls:     `{"id":%[1]q,"tenant_id":%[2]q,"user_id":%[3]q,"persona":{"name":"Ana","system_prompt":"words"},"updated_at":%[4]q}`,
		storage.IndexChunks:    `{"id":%[5]q,"tenant_id":%[2]q,"reader":%[3]q,"kind":"chunk","document_id":"sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a","title":"words","media_type":"text/plain","created_at":%[4]q}`,
		storage.IndexWorkflows: `{"tenant_id":%[2]q,"user_id":%[3]q,"session_id":%[1]q,"agent":"a","workflow_complete":true,"updated_at":%[4]q}`,
	} {
		w.Must(d.Put(w.Context(), tenant, index, storage.Document{ID: id, Position: position, Body: fmt.Appendf(nil, body, id, tenant, user, at, intents.Digest([]byte(id)))}))
	}
	putConnection(w, d, tenant, user, id, position)
}

// putConnection writes a connection that a skill.connect made at a position, and whose tokens were refreshed often.
func putConnection(w *routertest.World, d storage.Documents, tenant, user, id string, position int64) {
	w.Helper()
	w.Must(d.Put(w.Context(), tenant, storage.IndexConnections, storage.Document{ID: id, Position: position + 1<<20, Body: fmt.Appendf(nil, `{"tenant_id":%q,"user_id":%q,"server":"s","issuer":"i","position":%d,"sealed":{"data":""}}`, tenant, user, position)}))
}

// onlyMineGone checks that of the documents mine, bens, later and elsewhere (of tenant acme) the first
// is gone from every index, and no other.
func onlyMineGone(w *routertest.World, d storage.Documents) {
	w.Helper()
	for id, tenant := range map[string]string{"mine": "default", "bens": "default", "later": "default", "elsewhere": "acme"} {
		for _, index := range []string{storage.IndexMemory, storage.IndexMoments, storage.IndexSouls, storage.IndexChunks, storage.IndexWorkflows, storage.IndexConnections} {
			_, err := d.Get(w.Context(), tenant, index, id)
			if gone := errors.Is(err, storage.ErrNotFound); gone != (id == "mine") || err != nil && !gone {
				w.Errorf("%s %s: %v", index, id, err)
			}
		}
	}
}
