package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/journaltest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// TestDamaged: whichever file of a ledger is cut short, the error says what is intact and what to do.
func TestDamaged(t *testing.T) {
	j := journaltest.NewJournal(nil)
	w := newWorld(t, j)
	for n := range 3 {
		if err := commit(t.Context(), j, "acme", n); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.published(6)
	w.end()
	for _, name := range []string{".state/treeState", ".state/version", "tile/0/000.p/6", "tile/entries/000.p/6"} {
		path := filepath.Join(w.cfg.Dir, filepath.FromSlash(name))
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, damage := range map[string]func() error{"empty": func() error { return os.Truncate(path, 0) }, "gone": func() error { return os.Remove(path) }} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			l, err := ledger.Open(t.Context(), w.cfg)
			if err == nil { // it is made again, or looked at later
				err = errors.Join(l.Close())
				if err != nil {
					t.Errorf("%s, %s: %v", name, what, err)
				}
			} else if !strings.Contains(err.Error(), "nothing was changed: ") || !strings.Contains(err.Error(), "writ admin restore BACKUP --data DIR") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestResume: a ledger continues after its last leaf, and refuses to if the
// journal is not the one that it was made from.
func TestResume(t *testing.T) {
	j := journaltest.NewJournal(nil)
	w := newWorld(t, j)
	for n := range 3 {
		if err := commit(t.Context(), j, "acme", n); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.published(6)
	w.end()
	if err := commit(t.Context(), j, "acme", 3); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.published(8)
	w.end()
	w.check(j, 8)

	behind := journaltest.NewJournal(nil)
	for n := range 3 {
		if err := commit(t.Context(), behind, "acme", n); err != nil {
			t.Fatal(err)
		}
	}
	w.cfg.Records = behind
	if _, err := ledger.Open(t.Context(), w.cfg); !errors.Is(err, ledger.ErrAhead) {
		t.Fatalf("a journal behind its ledger: %v", err)
	}
	if err := ledger.CheckAhead(w.cfg.Dir, behind.Next()); !errors.Is(err, ledger.ErrAhead) {
		t.Fatalf("CheckAhead: %v", err)
	}
	if err := ledger.CheckAhead(w.cfg.Dir, j.Next()); err != nil {
		t.Fatal(err)
	}
	if err := ledger.CheckAhead(t.TempDir(), 0); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := commit(t.Context(), behind, "acme", 10+n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ledger.Open(t.Context(), w.cfg); !errors.Is(err, ledger.ErrDiverged) {
		t.Fatalf("another journal: %v", err)
	}
}

// TestHalt: leaves that another writer put into the log are found, and nothing
// is appended after them.
func TestHalt(t *testing.T) {
	j := journaltest.NewJournal(nil)
	w := newWorld(t, j)
	other := newWorld(t, journaltest.NewJournal(nil))
	other.cfg.Dir, other.cfg.Key = w.cfg.Dir, w.cfg.Key
	w.start()
	if err := commit(t.Context(), j, "acme", 0); err != nil {
		t.Fatal(err)
	}
	w.published(2)
	// The intruder's journal has two records more.
	intruder := journaltest.NewJournal(nil)
	other.cfg.Records = shifted{j, intruder}
	for n := range 2 {
		if err := commit(t.Context(), intruder, "acme", n+5); err != nil {
			t.Fatal(err)
		}
	}
	other.start()
	other.published(4)
	other.end()
	if err := commit(t.Context(), j, "acme", 1); err != nil {
		t.Fatal(err)
	}
	w.ledger.Wake()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := w.ledger.WaitPublished(ctx, 1000); !errors.Is(err, ledger.ErrDiverged) {
		t.Fatalf("the sequencer goes on: %v", err)
	}
	w.end()
}

// shifted has the first two records of one journal, then another's.
type shifted struct {
	storage.Records
	next storage.Records
}

func (s shifted) Next() int64 { return s.next.Next() }
func (s shifted) Get(ctx context.Context, p int64) (storage.Record, error) {
	if p < 2 {
		return s.Records.Get(ctx, p)
	}
	return s.next.Get(ctx, p)
}

func (s shifted) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return s.next.Scan(ctx, from)
}

// TestTagSecret: made once, retained, refused if others can read it; tags
// differ by tenant and by log.
func TestTagSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tags")
	secret := must[[]byte](t)(ledger.CreateSecret(path))
	if again := must[[]byte](t)(ledger.CreateSecret(path)); !bytes.Equal(secret, again) || len(secret) != 32 {
		t.Fatal("the secret has changed")
	}
	a := must[string](t)(ledger.NewTags(secret, "writ/a").Tag("acme"))
	for _, other := range []string{must[string](t)(ledger.NewTags(secret, "writ/b").Tag("acme")), must[string](t)(ledger.NewTags(secret, "writ/a").Tag("acm"))} {
		if a == other || len(a) != 64 {
			t.Fatal("two tags are one")
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.ReadSecret(path); err == nil {
		t.Fatal("a secret that others can read is taken")
	}
}
