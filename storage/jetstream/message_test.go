package jetstream

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/judge"
)

func FuzzDecode(f *testing.F) {
	key := storage.IntentKey("acme", "u", "t", "k")
	rec := storagetest.Telling(storage.NewRecord(storage.KindIntent, time.UnixMilli(1), map[string]json.RawMessage{"envelope": json.RawMessage(`{}`)}), key, intents.Allow)
	rec.Position = 7
	f.Add(block{
		First: 7, Commits: []judge.Committed{{ID: "id", First: 7, N: 1}},
		entries: []storage.Entry{{Record: rec, Take: true, Key: key, Holder: storage.NoPosition, Open: true, Target: storage.NoPosition, Writes: []storage.Subject{"s"}}},
	}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		g, _, err := decode(data)
		if err != nil {
			return
		}
		again, _, err := decode(g.encode())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(g, again, cmp.AllowUnexported(block{}), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("-once +twice:\n%s", d)
		}
	})
}
