package codec

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/judge"
)

func bodies() []storage.Entry {
	at := time.UnixMilli(1_800_000_000_123).UTC()
	parts := map[string]json.RawMessage{"envelope": json.RawMessage(`{"a":1}`), "grant": json.RawMessage(`"x"`)}
	erased, _ := storage.NewRecord(storage.KindOutcome, at, parts).Without("envelope")
	return []storage.Entry{
		{Record: storage.Record{Kind: storage.KindControl, At: at}, Target: storage.NoPosition, Holder: storage.NoPosition},
		{
			Record: storage.NewRecord(storage.KindIntent, at, parts), Take: true, Holder: 1 << 40, Open: true, Target: storage.NoPosition,
			Writes: []storage.Subject{"plan/acme/p", ""},
		},
		{Record: storage.NewRecord(storage.KindOutcome, time.UnixMilli(-5).UTC(), parts), Target: 0, Holder: storage.NoPosition},
		{Record: erased, Target: 0, Holder: storage.NoPosition},
	}
}

func TestBodyRoundTrip(t *testing.T) {
	for i, want := range bodies() {
		want.Record.Position = int64(i)
		kind := map[storage.Kind]int{storage.KindIntent: 0, storage.KindOutcome: 1, storage.KindControl: 4}[want.Record.Kind]
		got, err := Decode(int64(i), kind, Append(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	}
}

// FuzzBody: no bytes panic, and what decodes encodes to something that decodes alike.
func FuzzBody(f *testing.F) {
	for _, e := range bodies() {
		f.Add(0, Append(nil, e))
	}
	f.Add(1, append(Append(nil, bodies()[3]), 0, 0, 0))
	f.Add(99, []byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		e, err := Decode(7, kind, body)
		if err != nil {
			return
		}
		again, err := Decode(7, kind, Append(nil, e))
		if err != nil {
			t.Fatalf("encoded again: %v", err)
		}
		if d := cmp.Diff(e, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("-once +twice:\n%s", d)
		}
	})
}

func FuzzCommits(f *testing.F) {
	f.Add(AppendCommits(nil, 5, []judge.Committed{{ID: "id", First: 5, N: 2}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := DecodeCommits(5, raw)
		if err != nil {
			return
		}
		twice, err := DecodeCommits(5, AppendCommits(nil, 5, once))
		if d := cmp.Diff(once, twice); err != nil || d != "" {
			t.Fatalf("encoded again: %v\n%s", err, d)
		}
	})
}
