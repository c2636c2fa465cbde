package upkeep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// writing keeps a node under load until stop is called, which returns how many intents were
// executed: each of four writers repeatedly writes the persona of a user of its own. All have
// written once when it returns.
func writing(t *testing.T, n *node.Node, dir string) (stop func() int) {
	t.Helper()
	var working, begun sync.WaitGroup
	end, counts := make(chan struct{}), make([]int, 4)
	for w := range counts {
		begun.Add(1)
		first := sync.OnceFunc(begun.Done)
		working.Go(func() {
			defer first()
			for {
				select {
				case <-end:
					return
				default:
				}
				soul := json.RawMessage(fmt.Sprintf(`{"user_id":"user_%d","persona":{"name":"Name %d","tone":"plain","language":"en","system_prompt":"Be brief."}}`, w, counts[w]))
				if err := submit(t.Context(), n, config(dir), "soul.put", soul); err != nil {
					t.Error(err)
					return
				}
				counts[w]++
				first()
			}
		})
	}
	begun.Wait()
	return sync.OnceValue(func() (total int) {
		close(end)
		working.Wait()
		for _, n := range counts {
			total += n
		}
		return total
	})
}

// written compares effects with intents: each persona is that of the last intent for it in the
// journal, and all intents are ended, each once.
func written(t *testing.T, n *node.Node, dir string) {
	t.Helper()
	recovered(t, n)
	last, ended := map[string]state.Intent{}, map[int64]int{}
	total := 0
	for _, rec := range all(t, n) {
		switch rec.Kind {
		case storage.KindIntent:
			s, err := state.ReadIntent(rec)
			must(t, err)
			if s.Type == "soul.put" {
				var args struct {
					UserID string `json:"user_id"`
				}
				must(t, json.Unmarshal(s.Args, &args))
				last[args.UserID], total = s, total+1
			}
		case storage.KindOutcome:
			out, of, err := state.OutcomeOf(rec)
			must(t, err)
			if ended[of]++; out.Status != intents.Done || ended[of] > 1 {
				t.Errorf("intent %d: outcome %d is %s", of, ended[of], out.Code)
			}
		default:
		}
	}
	if total < 4 {
		t.Errorf("%d intents", total)
	}
	souls, err := documentsOf(t.Context(), documentsBeside(t, dir), "system", storage.IndexSouls)
	must(t, err)
	for _, doc := range souls {
		var soul struct {
			UserID string `json:"user_id"`
		}
		must(t, json.Unmarshal(doc.Body, &soul))
		if s := last[soul.UserID]; doc.Position != s.Position {
			t.Errorf("%s: the document is of %d, the last intent of %d", soul.UserID, doc.Position, s.Position)
		}
	}
	if len(souls) != 4 {
		t.Errorf("%d documents of 4 users", len(souls))
	}
}

// keyCopy is a copy of the keys of erasable parts.
func keyCopy(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "erasable.tar")
	if _, err := CopyKeys(t.Context(), dir, to, time.Now()); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestDocumentsOfAnErasedUser: a backup with a copy of the keys from after the erasure of a user gives
// none of the user's documents, says so, and gives all others. What the journal makes is made again. A
// copy of the keys from before the backup, without any record between, is refused.
func TestDocumentsOfAnErasedUser(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	cfg := config(dir)
	n, err := node.Open(t.Context(), cfg)
	must(t, err)
	end := run(t, n)
	for _, user := range []string{"ana", "ben"} {
		must(t, submit(t.Context(), n, cfg, "soul.put", json.RawMessage(`{"user_id":"`+user+`","persona":{"name":"The words of `+user+`","tone":"plain","language":"en","system_prompt":"Be brief."}}`)))
	}
	must(t, end())
	must(t, n.Close())
	_, made, err := Reindex(t.Context(), dir, datadir.DocumentsAt{}, storage.IndexIntents) // a node may stop before it has made any
	if err != nil || made == 0 {
		t.Fatalf("%d made: %v", made, err)
	}
	older := keyCopy(t, dir)
	backup := filepath.Join(to, "backup")
	b, err := MakeBackup(t.Context(), dir, backup, true, time.Now())
	must(t, err)
	for _, path := range filesBelow(t, backup) {
		raw, err := os.ReadFile(path)
		must(t, err)
		if strings.Contains(path, "documents") && (bytes.Contains(raw, []byte("The words of")) || bytes.Contains(raw, []byte("Be brief"))) {
			t.Errorf("%s has words", path)
		}
	}
	same := keyCopy(t, dir)
	keeping(t, dir, func(d storage.Documents) {
		for _, user := range []string{"ana", "local"} { // the second one signed all intents
			must(t, d.(storage.UserKeys).EraseUserKey(t.Context(), "system", user))
		}
	})
	newer := keyCopy(t, dir)
	if r, err := Restore(t.Context(), backup, filepath.Join(to, "older"), "", older); !errors.Is(err, ErrNoKeyCopy) {
		t.Errorf("an older copy: %+v %v", r.Lost, err)
	}
	souls := func(at string) (users []string) {
		t.Helper()
		keeping(t, at, func(d storage.Documents) {
			docs, err := documentsOf(t.Context(), d, "system", storage.IndexSouls)
			must(t, err)
			for _, doc := range docs {
				user, err := storage.OwnerOf(storage.IndexSouls, doc.Body)
				must(t, err)
				users = append(users, user)
			}
		})
		slices.Sort(users)
		return users
	}
	at := filepath.Join(to, "same")
	r, err := Restore(t.Context(), backup, at, "", same)
	if err != nil || !r.Verified || !r.Health.OK || r.Lost != nil || !slices.Equal(souls(at), []string{"ana", "ben"}) {
		t.Errorf("%+v %v, lost %+v, %v", r.Health, err, r.Lost, souls(at))
	}
	at = filepath.Join(to, "newer")
	r, err = Restore(t.Context(), backup, at, "", newer)
	if err != nil || !r.Verified || !r.Health.OK || !r.Health.Compared || r.Health.Projections == 0 || !slices.Equal(souls(at), []string{"ben"}) {
		t.Errorf("%+v %v %v, %v", r.Health, r.Health.FirstBad, err, souls(at))
	}
	if len(r.Lost) != 2 || r.Lost[0].User != "ana" || r.Lost[0].Documents != 1 || !slices.Contains(r.Lost[1].Indices, storage.IndexIntents) {
		t.Errorf("lost: %+v", r.Lost)
	}
	for _, path := range filesBelow(t, at) {
		raw, err := os.ReadFile(path)
		must(t, err)
		if strings.Contains(path, "documents") && bytes.Contains(raw, []byte("The words of ana")) {
			t.Errorf("%s has words of ana", path)
		}
		if strings.Contains(path, encryptedDocuments) {
			t.Errorf("%s is left", path)
		}
	}
	if next := answered(t, at); next <= b.Records {
		t.Errorf("%d records, %d were restored", next, b.Records)
	}
}

// TestBackupUnderLoad: copies made under load are each sound, with the documents made from the
// journal. A node continues with a copy and ends the intents that were in flight; none of their
// effects is repeated or lost.
func TestBackupUnderLoad(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	n := open(t, config(dir))
	run(t, n)
	stop := writing(t, n, dir)
	var made []Backup
	for i := range 5 {
		b, err := MakeBackup(t.Context(), dir, filepath.Join(to, fmt.Sprint(i, ".tar")), true, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, b)
	}
	if accepted := stop(); accepted < 8 || made[4].Records <= made[0].Records {
		t.Fatalf("there was no load: %d intents, %d to %d records", accepted, made[0].Records, made[4].Records)
	}
	copied := keyCopy(t, dir)
	for i, b := range made {
		at := filepath.Join(to, fmt.Sprint("restored", i))
		r, err := Restore(t.Context(), filepath.Join(to, fmt.Sprint(i, ".tar")), at, "", copied)
		if err != nil || !r.Verified || !r.Health.OK || !r.Health.Compared || r.Health.Records != b.Records || r.Leaves > r.Records {
			t.Fatalf("%d: %+v %v %v", i, r.Health, r.Health.FirstBad, err)
		}
	}
	at := filepath.Join(to, "restored2")
	next := answered(t, at, written)
	if h, err := Fsck(t.Context(), at, nil); err != nil || !h.OK || !h.Compared || h.Records < next || h.Records <= made[2].Records || h.Pending != 0 {
		t.Errorf("gone on: %+v %v %v", h, h.FirstBad, err)
	}
}

// TestBackupOfAStoppedNode: the backup has all of the directory, and can be without keys.
func TestBackupOfAStoppedNode(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	records := once(t, config(dir))
	b, err := MakeBackup(t.Context(), dir, filepath.Join(to, "copy"), false, time.Now())
	if err != nil || b.Records < int64(len(records)) || b.Leaves != b.Records || !b.Documents {
		t.Fatalf("%+v %v", b, err)
	}
	for _, path := range filesBelow(t, filepath.Join(to, "copy")) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(path, "/keys/") {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
	}
	copied := keyCopy(t, dir)
	r, err := Restore(t.Context(), filepath.Join(to, "copy"), filepath.Join(to, "bare"), "", copied)
	if err != nil || r.Verified || r.Keys {
		t.Fatalf("%+v %v", r, err)
	}
	r, err = Restore(t.Context(), filepath.Join(to, "copy"), filepath.Join(to, "with"), datadir.Keys(dir), copied)
	if err != nil || !r.Verified {
		t.Fatalf("%+v %v %v", r.Health, r.Health.FirstBad, err)
	}
	once(t, config(filepath.Join(to, "with")))
}

// TestDocumentsAreNotAheadInABackup: if a document was written by an intent that the journal lacks,
// there is no backup.
func TestDocumentsAreNotAheadInABackup(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	keep(t, config(dir), "default", "x.note", `1`)
	_, made, err := Reindex(t.Context(), dir, datadir.DocumentsAt{}, storage.IndexIntents) // a node may stop before it has made any
	if err != nil || made == 0 {
		t.Fatalf("%d made: %v", made, err)
	}
	execute(t, filepath.Join(dir, "documents.db"), `UPDATE documents SET position = 1000 WHERE row = (SELECT max(row) FROM documents)`)
	if _, err := MakeBackup(t.Context(), dir, filepath.Join(to, "copy"), true, time.Now()); !errors.Is(err, errAhead) {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestBackupLeavesOutUnwritten: a tile that is being written has a temporary name of its own, also
// of digits.
func TestBackupLeavesOutUnwritten(t *testing.T) {
	dir := t.TempDir()
	once(t, config(dir))
	for _, name := range []string{"tile/0/0001234567", "tile/0/000.p/11234567"} {
		path := filepath.Join(dir, "ledger", filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("half"), 0o600))
	}
	b, err := MakeBackup(t.Context(), dir, filepath.Join(t.TempDir(), "b"), false, time.Now())
	must(t, err)
	for _, f := range b.Files {
		if strings.Contains(f.Name, "1234567") {
			t.Errorf("%s is in the backup", f.Name)
		}
	}
}
