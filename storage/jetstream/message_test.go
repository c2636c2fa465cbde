package jetstream

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/judge"
)

func FuzzDecode(f *testing.F) {
	key := storage.OrderKey("acme", "u", "t", "k")
	rec := storage.NewRecord(storage.KindOrder, time.UnixMilli(1), map[string]json.RawMessage{"order": json.RawMessage(`{}`)})
	rec.Position = 7
	f.Add(block{
		codec.KeyRow{First: 7, Keys: []judge.Taken{{Key: key, Position: 7}}, Commits: []judge.Committed{{ID: "id", First: 7, N: 1}}},
		[]storage.Entry{{Record: rec, Take: true, Key: key, Holder: storage.Nobody, Open: true, Of: storage.Nobody, Touches: []storage.Subject{"s"}}},
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
