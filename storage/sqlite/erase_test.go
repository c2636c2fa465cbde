package sqlite_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// secretIntent has a word many times over, in a part of some kilobytes.
func secretIntent(word string, length int) storage.Entry {
	text := strings.Repeat(word+" ", 1+length/(len(word)+1))
	parts := map[string]json.RawMessage{
		"envelope": json.RawMessage(fmt.Sprintf("%q", text)), "decision": json.RawMessage(`{"kept":"` + word[:3] + `kept"}`), "summary": json.RawMessage(`{}`),
	}
	return storage.Entry{Record: storage.NewRecord(storage.KindIntent, time.UnixMilli(0), parts), Holder: storage.NoPosition, Target: storage.NoPosition}
}

func commitAll(t *testing.T, j *sqlite.Journal, id string, entries ...storage.Entry) {
	t.Helper()
	if r, err := j.Commit(t.Context(), storage.Commit{ID: id, Entries: entries}); err != nil || r.Verdict != storage.Won {
		t.Fatalf("commit: %+v, %v", r, err)
	}
}

// inFiles returns the files below a directory that contain some bytes.
func inFiles(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// sound has SQLite look at every page.
func sound(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var said string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Errorf("integrity: %s, %v", said, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// keyBytes are those of all key files.
func keyBytes(t *testing.T, dir string) (all []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, sqlite.KeysName, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	return all
}

// TestErasedBytes: erasable parts are in no file in the clear, and after Erase their keys are
// in none, while those of other records are. Later readers see digests.
func TestErasedBytes(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "journal")
	j := open(t, dir, sqlite.JournalOptions{})
	const n = 60
	var what []int64
	for i := range n {
		commitAll(t, j, fmt.Sprint(i), secretIntent(fmt.Sprintf("gone%02d", i), i*i*30), secretIntent(fmt.Sprintf("stay%02d", i), i*50))
		what = append(what, int64(2*i))
	}
	if len(inFiles(t, root, "stakept")) == 0 {
		t.Fatal("the test looks in the wrong place")
	}
	before := keyBytes(t, root)
	for _, at := range what[:n/2] {
		if err := j.Erase(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Erase(t.Context(), what[n/2:]...); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for i := range n {
			for _, word := range []string{"gone", "stay"} {
				if where := inFiles(t, root, fmt.Sprintf("%s%02d", word, i)); len(where) > 0 {
					t.Errorf("word %s%02d is in %v", word, i, where)
				}
			}
		}
		after := keyBytes(t, root)
		for slot := range 2 * n {
			key := before[slot*32 : slot*32+32]
			if slot%2 == 0 && bytes.Contains(after, key) || slot%2 == 1 && !bytes.Equal(after[slot*32:slot*32+32], key) {
				t.Errorf("the key of record %d", slot)
			}
		}
		for at := range int64(2 * n) {
			r, err := j.Get(t.Context(), at)
			if _, erased := r.Erased["envelope"]; err != nil || erased != (at%2 == 0) || erased == (r.Parts["envelope"] != nil) || r.Parts["decision"] == nil {
				t.Errorf("record %d: %+v, %v", at, r, err)
			}
		}
	}
	check()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	sound(t, filepath.Join(dir, "journal.db"))
	j = open(t, dir, sqlite.JournalOptions{OnLost: func(err error) { t.Error(err) }})
	check()
	commitAll(t, j, "more", secretIntent("more", 10)) // of a file of its own
	if got := len(keyBytes(t, root)); got != 2*len(before) {
		t.Errorf("%d bytes of keys, of one file %d", got, len(before))
	}
	closeJournal(t, j)
}

// TestManyKeys: a file that is used up is followed by the next.
func TestManyKeys(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "journal")
	j := open(t, dir, sqlite.JournalOptions{})
	var entries []storage.Entry
	for i := range 4100 {
		entries = append(entries, secretIntent(fmt.Sprintf("word%04d", i), 10))
	}
	commitAll(t, j, "1", entries...)
	for _, at := range []int64{0, 4095, 4096, 4099} {
		if r, err := j.Get(t.Context(), at); err != nil || r.Parts["envelope"] == nil {
			t.Errorf("record %d: %v", at, err)
		}
	}
	if err := j.Erase(t.Context(), 4095, 4096, 0); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int64]bool{0: true, 1: false, 4094: false, 4095: true, 4096: true, 4097: false} {
		if r, err := j.Get(t.Context(), at); err != nil || (r.Erased["envelope"] != "") != want {
			t.Errorf("record %d: %v, %v", at, r.Erased, err)
		}
	}
	if where := inFiles(t, root, "word"); len(where) > 0 {
		t.Errorf("in the clear in %v", where)
	}
	closeJournal(t, j)
}

// TestLostKeys: a key file that is missing, cut off or another one's fails closed for the parts
// of its records, is reported, and its slots are never used again.
func TestLostKeys(t *testing.T) {
	for name, harm := range map[string]func(file string) error{
		"missing":     os.Remove,
		"cut off":     func(file string) error { return os.Truncate(file, 16) },
		"another one": func(file string) error { return os.WriteFile(file, bytes.Repeat([]byte{7}, 4096*32), 0o600) },
		"all":         func(file string) error { return os.RemoveAll(filepath.Dir(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "journal")
			j := open(t, dir, sqlite.JournalOptions{})
			commitAll(t, j, "1", secretIntent("anas", 10))
			before, err := j.Get(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			closeJournal(t, j)
			if err := harm(filepath.Join(root, sqlite.KeysName, "0000000001")); err != nil {
				t.Fatal(err)
			}
			lost := 0
			j = open(t, dir, sqlite.JournalOptions{OnLost: func(error) { lost++ }})
			if lost == 0 {
				t.Error("nothing is reported")
			}
			if r, err := j.Get(t.Context(), 0); err != nil || r.Erased["envelope"] == "" || r.Digest() != before.Digest() {
				t.Errorf("%+v, %v", r, err)
			}
			commitAll(t, j, "2", secretIntent("bens", 10))
			if r, err := j.Get(t.Context(), 1); err != nil || r.Parts["envelope"] == nil {
				t.Errorf("%+v, %v", r, err)
			}
			if _, err := os.Stat(filepath.Join(root, sqlite.KeysName, "0000000002")); err != nil {
				t.Error(err)
			}
			if err := j.Erase(t.Context(), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			closeJournal(t, j)
		})
	}
}

// TestUnsalted: without a salt the digest would reveal what was erased.
func TestUnsalted(t *testing.T) {
	j := open(t, t.TempDir(), sqlite.JournalOptions{})
	e := secretIntent("gone", 10)
	delete(e.Record.Salts, "envelope")
	if r, err := j.Commit(t.Context(), storage.Commit{ID: "1", Entries: []storage.Entry{e}}); err == nil {
		t.Errorf("committed: %+v", r)
	}
	closeJournal(t, j)
}
