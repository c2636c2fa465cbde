package upkeep

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// recovered waits until the intents that were left open have ended: recovery runs beside new
// intents.
func recovered(t *testing.T, n *node.Node) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		open, err := n.Records().(*sqlite.Journal).OpenIntents(t.Context())
		must(t, err)
		if len(open) == 0 {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("open: %v", open)
		case <-look.C:
		}
	}
}

// TestRestoreMatrix: a backup has no key of an erasable part. It is restored with a copy of the keys
// that is as new or newer, and with no other. What was erased since stays erased and is listed, and
// the node serves once that is signed again, without a restart. One that has lost files of keys
// serves.
func TestRestoreMatrix(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	once(t, config(dir))
	older := keyCopy(t, dir)
	soul := func(n *node.Node, dir, user string) error {
		return submit(t.Context(), n, config(dir), "soul.put", json.RawMessage(`{"user_id":"`+user+`","persona":{"name":"N","tone":"plain","language":"en","system_prompt":"Be brief."}}`))
	}
	answered(t, dir, func(t *testing.T, n *node.Node, dir string) {
		t.Helper()
		must(t, errors.Join(soul(n, dir, "ana"), soul(n, dir, "bea")))
	})
	backup := filepath.Join(to, "backup")
	if _, err := MakeBackup(t.Context(), dir, backup, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, path := range filesBelow(t, backup) {
		if strings.Contains(path, sqlite.KeysName) {
			t.Errorf("%s is in the backup", path)
		}
	}
	same := keyCopy(t, dir)
	answered(t, dir, func(t *testing.T, n *node.Node, dir string) {
		t.Helper()
		for _, rec := range all(t, n) {
			if s, err := state.ReadIntent(rec); rec.Kind == storage.KindIntent && err == nil && s.Type == "soul.put" {
				must(t, submit(t.Context(), n, config(dir), "record.erase", catalog.RecordErase{Tenant: s.Tenant, IntentID: s.Decision.IntentID, Position: rec.Position, Parts: []string{catalog.ErasesEnvelope, catalog.ErasesResult}, Reason: "asked"}))
				break // the other one stays
			}
		}
	})
	newer := keyCopy(t, dir)
	other := t.TempDir()
	once(t, config(other))
	damaged := filepath.Join(to, "damaged")
	raw, err := os.ReadFile(same)
	must(t, err)
	must(t, os.WriteFile(damaged, raw[:len(raw)/2], 0o600))
	for name, row := range map[string]struct {
		keys        string
		refused     string             // no copy is restored, for this reason
		harm        func(string) error // to the restored directory
		unexplained int
		condition   string
	}{
		"older":          {keys: older, refused: "is older than the backup"},
		"missing":        {refused: "name the newest copy"},
		"not there":      {keys: filepath.Join(to, "nowhere"), refused: "no such file"},
		"of another log": {keys: keyCopy(t, other), refused: "is of another log"},
		"damaged":        {keys: damaged, refused: "keys"},
		"no copy":        {keys: filepath.Join(backup, backupManifest), refused: "it is none"},
		"as new":         {keys: same},
		"newer":          {keys: newer, unexplained: 1, condition: "erasures"},
		"files are lost": {keys: newer, unexplained: 1, condition: "keys", harm: func(dir string) error { return os.RemoveAll(filepath.Join(dir, sqlite.KeysName)) }},
	} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "at")
			r, err := Restore(t.Context(), backup, at, "", row.keys)
			if row.refused != "" {
				if _, there := os.Lstat(at); !errors.Is(err, ErrNoKeyCopy) || !strings.Contains(fmt.Sprint(err), row.refused) || there == nil {
					t.Errorf("%v, %+v", err, r.Health)
				}
				return
			}
			if err != nil || !r.Verified || len(r.Health.Unexplained) != row.unexplained || r.Health.OK != (row.unexplained == 0) {
				t.Fatalf("%v %+v %v", err, r.Health, r.Health.FirstBad)
			}
			if row.harm != nil {
				must(t, row.harm(at))
			}
			n := open(t, config(at))
			run(t, n)
			if up, err := datadir.ReadConditions(at); err != nil || len(up) != min(len(row.condition), 1) || row.condition != "" && up[0].Name != row.condition {
				t.Errorf("%+v %v", up, err)
			}
			waits := row.condition == "erasures"
			if ready := answers(t, n, "/readyz"); n.Router().Ready() == waits || ready != (map[bool]int{false: 200, true: 503}[waits]) {
				t.Errorf("/readyz is %d", ready)
			}
			if err := soul(n, at, "cia"); waits != (err != nil && strings.Contains(err.Error(), "OVERLOADED: no intent is taken: 1 intents have lost parts, at the positions")) {
				t.Errorf("before: %v", err)
			}
			if !waits {
				return
			}
			u := r.Health.Unexplained[0]
			if want := (catalog.RecordErase{Tenant: "system", IntentID: u.IntentID, Position: u.Position, Parts: []string{catalog.ErasesEnvelope, catalog.ErasesResult}}).Command(); u.Do != want {
				t.Errorf("%s, want %s", u.Do, want)
			}
			must(t, submit(t.Context(), n, config(at), "record.erase", catalog.RecordErase{Tenant: u.Tenant, IntentID: u.IntentID, Position: u.Position, Parts: u.Parts, Reason: "asked"}))
			must(t, soul(n, at, "cia"))
			if ready := answers(t, n, "/readyz"); ready != http.StatusOK {
				t.Errorf("/readyz is %d afterwards", ready)
			}
			published(t, n)
			if h, err := Fsck(t.Context(), at, nil); err != nil || !h.OK {
				t.Errorf("%+v %v %v", h, h.FirstBad, err)
			}
		})
	}
}

// answers is the status of a route of a node.
func answers(t *testing.T, n *node.Node, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.Addr().String()+path, nil)
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	must(t, resp.Body.Close())
	return resp.StatusCode
}

// TestRestoreRefuses: an incomplete or unsound backup is refused, and nothing is left.
func TestRestoreRefuses(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	once(t, config(dir))
	good := filepath.Join(to, "good")
	if _, err := MakeBackup(t.Context(), dir, good, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	copied := keyCopy(t, dir)
	harms := map[string]func(t *testing.T, backup string){
		"a changed file": func(t *testing.T, backup string) { t.Helper(); edit(t, filepath.Join(backup, "journal")) },
		"a missing file": func(t *testing.T, backup string) { t.Helper(); remove(t, filepath.Join(backup, "blobs", "cas")) },
		"no manifest": func(t *testing.T, backup string) {
			t.Helper()
			must(t, os.Remove(filepath.Join(backup, backupManifest)))
		},
		"another format": func(t *testing.T, backup string) {
			t.Helper()
			remanifest(t, backup, func(b *Backup) { b.Format = 99 })
		},
		"a name outside": func(t *testing.T, backup string) {
			t.Helper()
			remanifest(t, backup, func(b *Backup) { b.Files[0].Name = "../x" })
		},
		"a name not ours": func(t *testing.T, backup string) {
			t.Helper()
			remanifest(t, backup, func(b *Backup) { b.Files[0].Name = "etc/x" })
		},
		"the same name twice": func(t *testing.T, backup string) {
			t.Helper()
			remanifest(t, backup, func(b *Backup) { b.Files = append(b.Files, b.Files[0]) })
		},
		"other counts": func(t *testing.T, backup string) { t.Helper(); remanifest(t, backup, func(b *Backup) { b.Records-- }) },
	}
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			space := t.TempDir()
			bad := filepath.Join(space, "bad")
			must(t, os.CopyFS(bad, os.DirFS(good)))
			harm(t, bad)
			at := filepath.Join(space, "at")
			if r, err := Restore(t.Context(), bad, at, "", copied); !errors.Is(err, ErrBackup) {
				t.Errorf("%+v %v", r.Health, err)
			}
			if left, err := os.ReadDir(space); err != nil || len(left) != 1 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
	t.Run("a directory that is there", func(t *testing.T) {
		at := t.TempDir()
		must(t, os.Mkdir(filepath.Join(at, "lost+found"), 0o700))
		if r, err := Restore(t.Context(), good, at, "", copied); err != nil || !r.Verified {
			t.Fatalf("%+v %v", r, err)
		}
		if h, err := Fsck(t.Context(), at, nil); err != nil || !h.OK {
			t.Errorf("%+v %v", h, err)
		}
		if err := datadir.CheckParts(at, datadir.DocumentsAt{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("one that was cut off", func(t *testing.T) {
		for _, there := range []bool{true, false} {
			at := filepath.Join(t.TempDir(), "at")
			inside, stage := datadir.Restoring(at)
			if there {
				stage = inside
			}
			must(t, os.MkdirAll(stage, 0o700))
			if err := datadir.CheckParts(at, datadir.DocumentsAt{}); !errors.Is(err, datadir.ErrRestoring) {
				t.Errorf("a log may begin there: %v", err)
			}
			if _, err := Restore(t.Context(), good, at, "", copied); err == nil || !strings.Contains(err.Error(), stage) {
				t.Errorf("%v", err)
			}
		}
	})
	t.Run("a link to nothing", func(t *testing.T) {
		at := filepath.Join(t.TempDir(), "link")
		must(t, os.Symlink("nowhere", at))
		_, err := Restore(t.Context(), good, at, "", copied)
		if _, left := os.Lstat(at + ".restoring"); err == nil || !strings.Contains(err.Error(), "with --data") || left == nil {
			t.Errorf("%v", err)
		}
	})
	t.Run("a file above", func(t *testing.T) {
		at := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(at, nil, 0o600))
		if _, err := Restore(t.Context(), good, filepath.Join(at, "new"), "", copied); err == nil || !strings.Contains(err.Error(), "with --data") {
			t.Errorf("%v", err)
		}
	})
	t.Run("no directory above", func(t *testing.T) {
		if _, err := Restore(t.Context(), good, filepath.Join(t.TempDir(), "new", "deep", "er"), "", copied); err != nil {
			t.Error(err)
		}
	})
	t.Run("a directory in use", func(t *testing.T) {
		if _, err := Restore(t.Context(), good, dir, "", copied); !errors.Is(err, ErrNotEmpty) {
			t.Error(err)
		}
	})
	t.Run("a backup there", func(t *testing.T) {
		if _, err := MakeBackup(t.Context(), dir, good, true, time.Now()); err == nil {
			t.Error("it was written over")
		}
	})
}

// TestJournalBehindItsLedger: a directory whose journal was put back by hand from before its ledger
// neither starts nor can be restored from; with a journal that is not behind it continues.
func TestJournalBehindItsLedger(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	once(t, config(dir))
	old := filepath.Join(to, "old")
	if _, err := MakeBackup(t.Context(), dir, old, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	answered(t, dir)
	journal := filepath.Join(dir, "journal", "journal.db")
	newer, err := os.ReadFile(journal)
	must(t, err)
	older, err := os.ReadFile(filepath.Join(old, "journal", "journal.db"))
	must(t, err)
	must(t, os.WriteFile(journal, older, 0o600))
	behind, err := node.Open(t.Context(), config(dir))
	if !errors.Is(err, ledger.ErrAhead) || !strings.Contains(fmt.Sprint(err), "Put back a copy of the journal") {
		t.Fatalf("%v %v", behind, err)
	}
	b, err := MakeBackup(t.Context(), dir, filepath.Join(to, "behind"), true, time.Now())
	if err == nil {
		t.Errorf("a backup was made of it: %+v", b)
	}
	must(t, os.WriteFile(journal, newer, 0o600))
	once(t, config(dir))
}

// answered runs a node for one more intent and returns the number of records afterwards.
func answered(t *testing.T, dir string, look ...func(*testing.T, *node.Node, string)) int64 {
	t.Helper()
	n, err := node.Open(t.Context(), config(dir))
	must(t, err)
	end := run(t, n)
	must(t, submit(t.Context(), n, config(dir), "admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "x.more", Value: json.RawMessage("1")}}))
	for _, f := range look {
		f(t, n, dir)
	}
	must(t, end())
	next := n.Records().Next()
	must(t, n.Close())
	return next
}

// remanifest changes the manifest of a backup.
func remanifest(t *testing.T, backup string, change func(*Backup)) {
	t.Helper()
	path := filepath.Join(backup, backupManifest)
	raw, err := os.ReadFile(path)
	must(t, err)
	var b Backup
	must(t, json.Unmarshal(raw, &b))
	change(&b)
	must(t, os.Remove(path))
	must(t, writeManifest(path, b))
}
