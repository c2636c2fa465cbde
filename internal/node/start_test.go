package node

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// TestFirstStart: genesis, then the first API key, of which only the hash is
// anywhere but in its own file.
func TestFirstStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	key, records := once(t, config(dir))
	if d := cmp.Diff(firstRecords, shortAll(t, records)); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	for i, r := range records {
		if r.Position != int64(i) {
			t.Errorf("record %d says that it is %d", i, r.Position)
		}
	}
	if !strings.HasPrefix(key, "writ_") || len(key) < 40 {
		t.Fatalf("API key %q", key)
	}
	if kept, err := datadir.LocalKey(dir); err != nil || kept != key {
		t.Errorf("the file holds %q, error %v", kept, err)
	}
	if person, err := datadir.PersonKey(dir); err != nil || person == key || !bytes.Contains(records[3].Parts[storage.PartEnvelope], []byte(intents.Digest([]byte(person)))) {
		t.Errorf("the key of the person who is alone: %v", err)
	}
	hash := intents.Digest([]byte(key))
	if !bytes.Contains(records[1].Parts[storage.PartEnvelope], []byte(hash)) {
		t.Error("admin.put does not name the key's hash")
	}
	holds(t, dir, key, datadir.KeyFile(dir))
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Dir(datadir.KeyFile(dir)): 0o700, datadir.KeyFile(dir): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o", filepath.Base(path), got)
		}
	}
}

// holds fails if any file below a directory but one holds a text.
func holds(t *testing.T, dir, text, only string) {
	t.Helper()
	files, found := 0, false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "runtime") {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch in := bytes.Contains(raw, []byte(text)); {
		case in && path == only:
			found = true
		case in:
			t.Errorf("%s holds the API key", path)
		}
		return nil
	})
	if err != nil || files < 5 || !found {
		t.Errorf("%d files read, the key's own among them: %t, error %v", files, found, err)
	}
}

// TestRestart: no second genesis, no second key, the same log.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	first, before := once(t, config(dir))
	again, after := once(t, config(dir))
	if again != "" {
		t.Error("a second start made an API key")
	}
	if kept, err := datadir.LocalKey(dir); err != nil || kept != first {
		t.Errorf("the first key's file was changed, error %v", err)
	}
	if d := cmp.Diff(shortAll(t, before), shortAll(t, after)); d != "" {
		t.Errorf("records (-first +second start):\n%s", d)
	}
}

// TestRestartWithoutRoot: the root key may be offline, and the API key's file
// gone; nothing is made anew.
func TestRestartWithoutRoot(t *testing.T) {
	dir := t.TempDir()
	once(t, config(dir))
	if err := errors.Join(os.Remove(filepath.Join(dir, "keys", "root.pem")), os.Remove(datadir.KeyFile(dir))); err != nil {
		t.Fatal(err)
	}
	if key, records := once(t, config(dir)); key != "" || len(records) != len(firstRecords) {
		t.Errorf("key made: %t, %d records", key != "", len(records))
	}
}

// TestCrashBeforeFirstKey: genesis is there and the key is not. The next start
// makes it, in the same log.
func TestCrashBeforeFirstKey(t *testing.T) {
	dir := t.TempDir()
	n, err := Open(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	origin := n.Origin()
	if d := cmp.Diff(firstRecords[:1], shortAll(t, all(t, n))); d != "" {
		t.Fatalf("records after Open (-want +got):\n%s", d)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	// It may also have left a file with a key that no intent ever named.
	if err := os.WriteFile(datadir.KeyFile(dir), []byte("writ_of_the_crash\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	key, records := once(t, config(dir))
	if d := cmp.Diff(firstRecords, shortAll(t, records)); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	kept, err := datadir.LocalKey(dir)
	if err != nil || key == "" || kept != key {
		t.Errorf("the file holds %q and the key is %q, error %v", kept, key, err)
	}
	g, err := state.OpenGenesis(*controlOf(t, records[0]).Genesis)
	if err != nil || g.Origin != origin {
		t.Errorf("origin %s, error %v; it was %s", g.Origin, err, origin)
	}
}

// TestCrashBeforeGenesis: some keys are there and no record is. They are used.
func TestCrashBeforeGenesis(t *testing.T) {
	dir := t.TempDir()
	keys, err := keydir.Create(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "keys", "planner.pem")); err != nil {
		t.Fatal(err)
	}
	n := open(t, config(dir))
	if want := state.Origin(keys[intents.RoleRoot].Public()); n.Origin() != want {
		t.Errorf("origin %s, not that of the root key that was there", n.Origin())
	}
}

// TestMissingKey: after the genesis a key is never made anew.
func TestMissingKey(t *testing.T) {
	dir := t.TempDir()
	n, err := Open(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "keys", "manager.pem")); err != nil {
		t.Fatal(err)
	}
	if n, err := Open(t.Context(), config(dir)); n != nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "manager.pem") {
		t.Errorf("error = %v", err)
	}
}

// TestSecondProcess: one process per data directory. The lock goes with it.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	n, err := Open(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), config(dir))
	if second != nil || err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "--data") {
		t.Errorf("error = %v, which must name the directory and what to do", err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, config(dir))
}

// TestPortInUse: nothing has begun then, and the directory is free again.
func TestPortInUse(t *testing.T) {
	first := open(t, config(t.TempDir()))
	cfg := config(t.TempDir())
	cfg.Listen = first.Addr().String()
	n, err := Open(t.Context(), cfg)
	if n != nil || err == nil || !strings.Contains(err.Error(), cfg.Listen) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("error = %v, which must name the address and what to do", err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "keys")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("keys were made: %v", err)
	}
	cfg.Listen = "127.0.0.1:0"
	open(t, cfg)
}
