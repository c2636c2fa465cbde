package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/upkeep"
)

// begun is a directory whose log has begun and says so.
func begun(t *testing.T, cfg Config) {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	if _, err := n.ledger.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(datadir.Arm(cfg.Dir, n.Origin(), time.Now()), stop(), n.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "started")); err != nil {
		t.Fatalf("the log has begun, and nothing says so: %v", err)
	}
}

// copyData copies a data directory that no node uses.
func copyData(t *testing.T, to, from string) {
	t.Helper()
	must(t, os.CopyFS(to, os.DirFS(from)))
	must(t, filepath.WalkDir(filepath.Join(to, "keys"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	}))
}

// What others were shown rests on some parts: where one is gone it is not made
// again, with the marker or, of an older directory, without it.
func TestMissingPartsAreNotRemade(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "data")
	begun(t, config(whole))
	for _, gone := range []string{"keys", "journal", "journal/journal.db", "keys/tags", "ledger", "documents.db", "blobs", "blobs/cas"} {
		for _, marked := range []bool{true, false} {
			if gone == "ledger" && !marked {
				continue // it is the last part: a start may have been cut off before it
			}
			dir := filepath.Join(t.TempDir(), "data")
			copyData(t, dir, whole)
			if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
				t.Fatal(err)
			}
			if !marked {
				if err := os.Remove(filepath.Join(dir, "started")); err != nil {
					t.Fatal(err)
				}
			}
			n, err := Open(t.Context(), config(dir))
			if err = errors.Join(err, n.close()); !errors.Is(err, datadir.ErrPartMissing) {
				t.Errorf("without %s, marked %t: %v", gone, marked, err)
			}
			if _, err := os.Stat(filepath.Join(dir, gone)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s was made again, marked %t", gone, marked)
			}
		}
	}
}

// A first start that was cut off before the log began is continued, whatever it had made, and
// so is one after keys were made by hand.
func TestCutFirstStart(t *testing.T) {
	made := []string{"keys/root.pem", "documents.db", "blobs/cas"}
	for set := range 1 << len(made) {
		dir := filepath.Join(t.TempDir(), "data")
		for i, name := range made {
			path := filepath.Join(dir, name)
			switch {
			case set&(1<<i) == 0:
			case i == 0:
				if _, err := keydir.Create(filepath.Join(dir, "keys")); err != nil {
					t.Fatal(err)
				}
			case i == 1:
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			default:
				if err := os.MkdirAll(path, 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
		n, err := Open(t.Context(), config(dir))
		if err = errors.Join(err, n.close()); err != nil {
			t.Errorf("%03b of %v: %v", set, made, err)
		}
	}
}

// The keys are there before the journal: a start that ends between the two would leave a journal
// without keys, and the next start would take them for lost.
func TestKeysBeforeJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	inTheWay := filepath.Join(dir, "keys", "root.pem")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), config(dir))
	_ = n.close()
	if err == nil {
		t.Fatal("it opens without keys")
	}
	if _, err := os.Stat(filepath.Join(dir, "journal", "journal.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal was made before the keys: %v", err)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	begun(t, config(dir))
}

// close of a node that may not have been opened.
func (n *Node) close() error {
	if n == nil {
		return nil
	}
	return n.Close()
}

// Before the log has begun whatever is missing is made. Later an operator may begin empty
// documents and blobs, by the commands that the refusal names.
func TestUnbegunPartsAreMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n, err := Open(t.Context(), config(dir))
	if err = errors.Join(err, n.close()); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"ledger", "keys/tags"} { // the last part first
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
		if gone == "ledger" {
			continue
		}
		begun(t, config(dir))
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.RemoveAll(filepath.Join(dir, "documents.db"+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n, err := Open(t.Context(), config(dir))
		err = errors.Join(err, n.close())
		_, command, _ := strings.Cut(fmt.Sprint(err), "go on without them: ")
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); command == "" || err != nil {
			t.Fatalf("%q: %s, %v", command, out, err)
		}
	}
	begun(t, config(dir))
	if h, err := upkeep.Fsck(t.Context(), dir, nil); err != nil || !h.OK {
		t.Errorf("%+v %v %v", h, h.FirstBad, err)
	}
}

// A ledger that was put back from an older copy vouches for nothing new until an
// operator has looked.
func TestLedgerPutBack(t *testing.T) {
	c := newWrist()
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.Now = c.now
	begun(t, cfg)
	kept := filepath.Join(t.TempDir(), "ledger")
	if err := os.CopyFS(kept, os.DirFS(datadir.Ledger(cfg.Dir))); err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	for _, id := range []string{"one", "two"} {
		if err := tenantPut(t.Context(), n, id); err != nil {
			t.Fatal(err)
		}
		c.set(2 * time.Minute)
	}
	if err := errors.Join(stop(), n.Close(), os.RemoveAll(datadir.Ledger(cfg.Dir)), os.CopyFS(datadir.Ledger(cfg.Dir), os.DirFS(kept))); err != nil {
		t.Fatal(err)
	}
	n = open(t, cfg)
	size := n.ledger.Size()
	ready, up := waits(t, n)
	if len(up) != 1 || up[0].Name != conditionLedger {
		t.Errorf("%+v", up)
	}
	if err := tenantPut(t.Context(), n, "three"); err == nil {
		t.Error("intents are taken")
	}
	if n.ledger.Size() != size {
		t.Error("leaves were appended")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := datadir.Confirm(ctx, cfg.Dir, conditionLedger, c.now); err != nil {
		t.Fatal(err)
	}
	ready()
	if err := tenantPut(t.Context(), n, "four"); err != nil {
		t.Error(err)
	}
	if _, err := n.ledger.Sync(ctx); err != nil || n.ledger.Size() != n.journal.Next() {
		t.Errorf("%d leaves of %d, %v", n.ledger.Size(), n.journal.Next(), err)
	}
}
