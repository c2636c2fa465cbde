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
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/judge"
)

func FuzzDecode(f *testing.F) {
	key := storage.NewIntentKeys(nil).Key("acme", "u", "t", "k")
	rec := storagetest.Telling(storage.NewRecord(storage.KindIntent, time.UnixMilli(1), map[string]json.RawMessage{"envelope": json.RawMessage(`{}`), "summary": json.RawMessage(`{}`)}), key, intents.Allow)
	rec.Position = 7
	fresh := func() (uint64, codec.Key, error) { return 9, codec.Key{1}, nil }
	keyOf := func(uint64) (codec.Key, error) { return codec.Key{1}, nil }
	whole, err := block{
		First: 7, Commits: []judge.Committed{{ID: "id", First: 7, N: 1}},
		entries: []storage.Entry{{Record: rec, Take: true, Key: key, Holder: storage.NoPosition, Open: true, Target: storage.NoPosition, Writes: []storage.Subject{"s"}}},
	}.encode(fresh)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		g, _, err := decode(data, keyOf)
		if err != nil {
			return
		}
		data, err = g.encode(fresh)
		if err != nil {
			return // a record of which some parts are erased
		}
		again, _, err := decode(data, keyOf)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(g, again, cmp.AllowUnexported(block{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(block{}, "slots")); d != "" {
			t.Fatalf("-once +twice:\n%s", d)
		}
	})
}
