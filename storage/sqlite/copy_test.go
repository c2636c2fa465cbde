package sqlite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// copying is a database under a copy.
type copying struct {
	begin    func(ctx context.Context, from, to string) (*sqlite.Copy, error)
	path     string
	write    func(round int)
	restart  func() // the write-ahead log may be restarted
	logBytes func() int64
}

const (
	copiedRows  = 256 * 20
	roundBytes  = 1 << 19
	boundRounds = 8
)

func copyingJournal(t *testing.T) copying {
	t.Helper()
	dir := t.TempDir()
	j := open(t, dir, sqlite.JournalOptions{})
	var many []storage.Entry
	for n := range copiedRows {
		many = append(many, storagetest.CrashCommit(fmt.Sprint("many", n), 1).Entries...)
	}
	commitAll(t, j, "many", many...)
	closeJournal(t, j) // its write-ahead log goes
	j = open(t, dir, sqlite.JournalOptions{})
	t.Cleanup(func() { closeJournal(t, j) })
	return copying{sqlite.CopyJournal, filepath.Join(dir, "journal.db"), func(round int) {
		commitAll(t, j, fmt.Sprint(round), secretIntent("more", roundBytes))
	}, j.RestartLog, j.LogBytes}
}

func copyingDocuments(t *testing.T) copying {
	t.Helper()
	return copyingDocumentsBy(t, sqlite.CopyDocuments)
}

func copyingEncrypted(t *testing.T) copying {
	t.Helper()
	return copyingDocumentsBy(t, encrypting(t.TempDir()))
}

func copyingDocumentsBy(t *testing.T, begin func(ctx context.Context, from, to string) (*sqlite.Copy, error)) copying {
	t.Helper()
	path := filepath.Join(t.TempDir(), "documents.db")
	d := openDocuments(t, path)
	var many []storage.Document
	for n := range copiedRows {
		many = append(many, benchDocument(n))
	}
	if _, err := d.Create(t.Context(), "acme", storage.IndexMemory, many...); err != nil {
		t.Fatal(err)
	}
	return copying{begin, path, func(round int) {
		for n := range 64 {
			doc := moved(many[(round*64+n)%len(many)], int64(copiedRows+round))
			if err := d.Put(t.Context(), "acme", storage.IndexMemory, doc); err != nil {
				t.Fatal(err)
			}
		}
	}, d.RestartLog, d.LogBytes}
}

// TestCopyKeepsTheLogShort: while a database is copied and written to, its write-ahead log is
// restarted as usual. Only an open transaction prevents it.
func TestCopyKeepsTheLogShort(t *testing.T) {
	for name, begun := range map[string]func(*testing.T) copying{"journal": copyingJournal, "documents": copyingDocuments, "encrypted": copyingEncrypted} {
		t.Run(name, func(t *testing.T) {
			x := begun(t)
			c, err := x.begin(t.Context(), x.path, filepath.Join(t.TempDir(), "copy.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			x.restart()
			x.write(0)
			x.write(1)
			before, round := x.logBytes(), 2
			for more := true; more && round < 4*boundRounds; round++ {
				if more, err = c.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				x.restart()
				x.write(round)
			}
			if round < 2*boundRounds {
				t.Fatalf("copied in %d rounds", round)
			}
			if grown := x.logBytes() - before; grown > boundRounds*roundBytes {
				t.Errorf("the log has grown by %d bytes in %d rounds", grown, round)
			}
			if _, err := c.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 4 * boundRounds {
				x.restart()
				x.write(round)
				round++
			}
			if grown := x.logBytes() - before; grown <= boundRounds*roundBytes {
				t.Errorf("the log has grown by %d bytes in a moment that is kept: the test shows nothing", grown)
			}
		})
	}
}

// TestCopyOfAJournal is what the journal was at the moment, without its keys: with them it has
// the same records, erased ones too.
func TestCopyOfAJournal(t *testing.T) {
	root, copied := t.TempDir(), t.TempDir()
	dir, to := filepath.Join(root, "journal"), filepath.Join(copied, "journal")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, sqlite.JournalOptions{})
	defer closeJournal(t, j)
	word := func(n int) string { return fmt.Sprintf("word%04d", n) }
	next := 0
	more := func(n int) {
		t.Helper()
		for range n {
			commitAll(t, j, fmt.Sprint(next), secretIntent(word(next), 40))
			next++
		}
	}
	erase := func(positions ...int64) {
		t.Helper()
		for _, p := range positions {
			if err := j.Erase(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	more(300)
	erase(2)
	c, err := sqlite.CopyJournal(t.Context(), filepath.Join(dir, "journal.db"), filepath.Join(to, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	erase(1, 299) // one is copied, the other is not
	more(10)
	if err := c.Approach(t.Context()); err != nil {
		t.Fatal(err)
	}
	erase(0, 305)
	more(10)
	n, err := c.Begin(t.Context())
	if err != nil || n != int64(next) {
		t.Fatal(n, err)
	}
	want := recordsOf(t, dir)
	if err := c.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err = c.Begin(t.Context()); err != nil || n != int64(next) {
		t.Fatal(n, err)
	}
	more(10)
	if err := c.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	sound(t, filepath.Join(to, "journal.db"))
	for _, r := range recordsOf(t, to) {
		if r.Parts["envelope"] != nil {
			t.Fatalf("record %d can be read without keys", r.Position)
		}
	}
	if where := inFiles(t, copied, "word"); len(where) > 0 {
		t.Errorf("in the clear in %v", where)
	}
	if err := os.CopyFS(filepath.Join(copied, sqlite.KeysName), os.DirFS(filepath.Join(root, sqlite.KeysName))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, recordsOf(t, to)); diff != "" {
		t.Error(diff)
	}
	r, err := sqlite.OpenRecords(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Entries(t.Context(), 0) {
		if err != nil {
			t.Error(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	on := open(t, to, sqlite.JournalOptions{OnDamage: func(d *sqlite.DamageError) { t.Error(d) }})
	commitAll(t, on, "on", secretIntent("onwards", 10))
	closeJournal(t, on)
}

func recordsOf(t *testing.T, dir string) (list []storage.Record) {
	t.Helper()
	r, err := sqlite.OpenRecords(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range r.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rec)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestCopyOfDocuments is what the documents were at the moment, however they have changed
// since they were copied, and is found by the same queries.
func TestCopyOfDocuments(t *testing.T) {
	t.Run("clear", func(t *testing.T) {
		copyOfDocuments(t, sqlite.CopyDocuments, func(to string) string { return to })
	})
	t.Run("encrypted", func(t *testing.T) {
		data := t.TempDir()
		copyOfDocuments(t, encrypting(data), func(to string) string {
			clear := filepath.Join(t.TempDir(), "documents.db")
			if lost, err := decrypted(t, data, to, clear); err != nil || lost != nil {
				t.Fatal(lost, err)
			}
			return clear
		})
	})
}

// copyOfDocuments copies documents that change meanwhile. restore gives the copy in the clear.
func copyOfDocuments(t *testing.T, begin func(ctx context.Context, from, to string) (*sqlite.Copy, error), restore func(to string) string) {
	t.Helper()
	path, to := filepath.Join(t.TempDir(), "documents.db"), filepath.Join(t.TempDir(), "documents.db")
	d := openDocuments(t, path)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	docs := map[int]storage.Document{}
	create := func(n int) {
		t.Helper()
		docs[n] = benchDocument(n)
		_, err := d.Create(t.Context(), "acme", storage.IndexMemory, docs[n])
		must(err)
	}
	// change retains the position, as adding a vector does.
	change := func(n int) {
		t.Helper()
		doc := docs[n]
		doc.Body = json.RawMessage(regexp.MustCompile(`"user_id":"u[0-9]+"`).ReplaceAllString(string(doc.Body), `"user_id":"changed"`))
		must(d.Swap(t.Context(), "acme", storage.IndexMemory, doc.Position, doc))
	}
	remove := func(n int) { t.Helper(); must(d.Delete(t.Context(), "acme", storage.IndexMemory, docs[n].ID)) }
	for n := range 600 {
		create(n)
	}
	c, err := begin(t.Context(), path, to)
	must(err)
	_, err = c.Step(t.Context())
	must(err)
	change(1)
	change(599)
	must(d.Put(t.Context(), "acme", storage.IndexMemory, moved(docs[2], 5000)))
	remove(3)
	remove(598)
	create(3) // under another row
	remove(597)
	must(c.Approach(t.Context()))
	change(4)
	remove(5)
	create(600)
	_, err = d.Create(t.Context(), "other", storage.IndexMemory, tenantDocument("other"))
	must(err)
	newest, err := c.Begin(t.Context())
	if err != nil || newest != 5000 {
		t.Fatal(newest, err)
	}
	queries := []storage.Query{{Limit: 1000}, {Limit: 1000, Terms: map[string][]string{"user_id": {"changed"}}}}
	want := map[string]storage.Page{}
	look := func(d *sqlite.Documents, at func(key string, page storage.Page)) {
		t.Helper()
		for _, tenant := range []string{"acme", "other"} {
			for i, q := range queries {
				page, err := d.Search(t.Context(), tenant, storage.IndexMemory, q)
				must(err)
				at(fmt.Sprint(tenant, i), page)
			}
		}
	}
	look(d, func(key string, page storage.Page) { want[key] = page })
	change(6)
	remove(7)
	create(601)
	must(c.Finish(t.Context()))
	to = restore(to)
	sound(t, to)
	look(openDocuments(t, to), func(key string, page storage.Page) {
		if diff := cmp.Diff(want[key], page); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	})
	if len(want["acme1"].Documents) != 3 || len(want["other0"].Documents) != 1 {
		t.Errorf("the test compares nothing: %d, %d", len(want["acme1"].Documents), len(want["other0"].Documents))
	}
}

func tenantDocument(tenant string) storage.Document {
	doc := benchDocument(0)
	doc.Body = json.RawMessage(strings.Replace(string(doc.Body), `"acme"`, `"`+tenant+`"`, 1))
	return doc
}

// TestCopyRefuses a file of another version, and what is none.
func TestCopyRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "documents.db")
	openDocuments(t, path)
	if _, err := sqlite.CopyJournal(t.Context(), path, filepath.Join(t.TempDir(), "copy.db")); err == nil || !strings.Contains(err.Error(), "schema version") {
		t.Errorf("%v", err)
	}
	if _, err := sqlite.CopyDocuments(t.Context(), filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "copy.db")); err == nil {
		t.Error("copied what is not there")
	}
	ended, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ended.Done()
	if _, err := sqlite.CopyDocuments(ended, path, filepath.Join(t.TempDir(), "copy.db")); err == nil {
		t.Error("copied without time")
	}
}
