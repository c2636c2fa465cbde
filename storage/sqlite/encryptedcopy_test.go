package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// encrypting copies documents under the keys of a data directory.
func encrypting(data string) func(ctx context.Context, from, to string) (*sqlite.Copy, error) {
	return func(ctx context.Context, from, to string) (*sqlite.Copy, error) {
		keys, err := sqlite.OpenUserKeys(data)
		if err != nil {
			return nil, err
		}
		return sqlite.EncryptDocuments(ctx, from, to, keys)
	}
}

func decrypted(t *testing.T, data, from, to string) ([]sqlite.LostDocuments, error) {
	t.Helper()
	keys, err := sqlite.OpenUserKeys(data)
	if err != nil {
		t.Fatal(err)
	}
	return sqlite.DecryptDocuments(t.Context(), from, to, keys)
}

// encryptedCopy makes an encrypted copy of documents of users u0 to u49.
func encryptedCopy(t *testing.T, data string) (to string) {
	t.Helper()
	path, to := filepath.Join(t.TempDir(), "documents.db"), filepath.Join(t.TempDir(), "copy.db")
	d := openDocuments(t, path)
	var docs []storage.Document
	for n := range 600 {
		docs = append(docs, benchDocument(n))
	}
	if _, err := d.Create(t.Context(), "acme", storage.IndexMemory, docs...); err != nil {
		t.Fatal(err)
	}
	c, err := encrypting(data)(t.Context(), path, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return to
}

func userKeysFile(data string) string {
	return filepath.Join(data, sqlite.KeysName, sqlite.UserKeysName)
}

// TestEncryptedCopy: it has no word and no id of a document. Without a user's key only the documents of
// that user are lost, whether or not the user has a new key since; without any slot of the user, or with
// the keys of another directory, it is not decrypted at all.
func TestEncryptedCopy(t *testing.T) {
	data := t.TempDir()
	old := encryptedCopy(t, data)
	raw, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"note 7 about", "volcano", "acme:s:", "session_id"} {
		if bytes.Contains(raw, []byte(word)) {
			t.Errorf("%q is in the copy", word)
		}
	}
	if left, err := filepath.Glob(old + "-*"); err != nil || left != nil {
		t.Errorf("left beside it: %v %v", left, err)
	}
	all, err := os.ReadFile(userKeysFile(data))
	if err != nil || len(all) != 50*64 {
		t.Fatalf("%d bytes of keys, %v", len(all), err)
	}
	count := func(path string) int {
		t.Helper()
		page, err := openDocuments(t, path).Search(t.Context(), "acme", storage.IndexMemory, storage.Query{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Documents)
	}
	lost := []sqlite.LostDocuments{{Tenant: "acme", User: "u7", Documents: 12, Indices: []string{storage.IndexMemory}}}
	check := func(data, from string, want []sqlite.LostDocuments) {
		t.Helper()
		to := filepath.Join(t.TempDir(), "documents.db")
		got, err := decrypted(t, data, from, to)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Fatalf("%v, lost -want +got:\n%s", err, d)
		}
		if n := count(to); n != 600-12*len(want) {
			t.Errorf("%d documents", n)
		}
	}
	check(data, old, nil)
	d := openDocuments(t, filepath.Join(data, "documents.db"))
	for _, of := range [][2]string{{"acme", "u7"}, {"other", "u8"}} { // u8 has no key of that tenant
		if err := d.EraseUserKey(t.Context(), of[0], of[1]); err != nil {
			t.Fatal(err)
		}
	}
	check(data, old, lost)
	recent := encryptedCopy(t, data)
	check(data, recent, nil)
	check(data, old, lost)
	for name, keys := range map[string][]byte{"older keys": all[:49*64], "no keys": nil, "a torn slot": all[:50*64-1], "keys changed": append(bytes.Repeat([]byte{1}, 64), all[64:]...)} {
		other := t.TempDir()
		if err := os.MkdirAll(filepath.Dir(userKeysFile(other)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(userKeysFile(other), keys, 0o600); err != nil {
			t.Fatal(err)
		}
		if lost, err := decrypted(t, other, old, filepath.Join(t.TempDir(), "documents.db")); !errors.Is(err, sqlite.ErrNoUserKey) {
			t.Errorf("%s: %+v %v", name, lost, err)
		}
	}
	another := t.TempDir()
	encryptedCopy(t, another)
	if lost, err := decrypted(t, another, old, filepath.Join(t.TempDir(), "documents.db")); !errors.Is(err, sqlite.ErrNoUserKey) {
		t.Errorf("keys of another directory: %+v %v", lost, err)
	}
}

// TestUserKeysOfProcesses: copies that are made at once give a user one key, and an erasure meanwhile
// loses no slot of others. A slot that a crash cut off is written over.
func TestUserKeysOfProcesses(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(userKeysFile(data)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(userKeysFile(data), []byte("a slot that was cut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	copies := make([]string, 4)
	for i := range copies {
		all.Go(func() { copies[i] = encryptedCopy(t, data) })
	}
	d := openDocuments(t, filepath.Join(data, "documents.db"))
	for n := range 100 {
		if err := d.EraseUserKey(t.Context(), "acme", fmt.Sprint("gone", n)); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	if info, err := os.Stat(userKeysFile(data)); err != nil || info.Size() != 50*64 {
		t.Fatal(info, err)
	}
	for _, one := range copies {
		if lost, err := decrypted(t, data, one, filepath.Join(t.TempDir(), "documents.db")); err != nil || lost != nil {
			t.Error(lost, err)
		}
	}
}

// TestUserKeysHaveTheOwnerOfTheirDirectory: a node can erase what a backup by root has made.
func TestUserKeysHaveTheOwnerOfTheirDirectory(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 { // who else makes no files for others
		uid, gid = 1234, 1235
	}
	data := t.TempDir()
	dir := filepath.Dir(userKeysFile(data))
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chown(dir, uid, gid)); err != nil {
		t.Fatal(err)
	}
	encryptedCopy(t, data)
	var is unix.Stat_t
	if err := unix.Stat(userKeysFile(data), &is); err != nil || int(is.Uid) != uid || int(is.Gid) != gid || is.Mode&0o777 != 0o600 {
		t.Errorf("%+v %v", is, err)
	}
}
