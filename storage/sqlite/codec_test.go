package sqlite

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
	parts := map[string]json.RawMessage{"order": json.RawMessage(`{"a":1}`), "grant": json.RawMessage(`"x"`)}
	erased, _ := storage.NewRecord(storage.KindOutcome, at, parts).Without("order")
	return []storage.Entry{
		{Record: storage.Record{Kind: storage.KindControl, At: at}, Of: storage.Nobody, Holder: storage.Nobody},
		{
			Record: storage.NewRecord(storage.KindOrder, at, parts), Take: true, Holder: 1 << 40, Open: true, Of: storage.Nobody,
			Touches: []storage.Subject{"plan/acme/p", ""},
		},
		{Record: storage.NewRecord(storage.KindOutcome, time.UnixMilli(-5).UTC(), parts), Of: 0, Holder: storage.Nobody},
		{Record: erased, Of: 0, Holder: storage.Nobody},
	}
}

func TestBodyRoundTrip(t *testing.T) {
	for i, want := range bodies() {
		want.Record.Position = int64(i)
		kind := map[storage.Kind]int{storage.KindOrder: 0, storage.KindOutcome: 1, storage.KindControl: 4}[want.Record.Kind]
		got, err := decodeBody(int64(i), kind, appendBody(nil, want))
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
		f.Add(0, appendBody(nil, e))
	}
	f.Add(1, append(appendBody(nil, bodies()[3]), 0, 0, 0))
	f.Add(99, []byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		e, err := decodeBody(7, kind, body)
		if err != nil {
			return
		}
		again, err := decodeBody(7, kind, appendBody(nil, e))
		if err != nil {
			t.Fatalf("encoded again: %v", err)
		}
		if d := cmp.Diff(e, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("-once +twice:\n%s", d)
		}
	})
}

func FuzzKeyRow(f *testing.F) {
	f.Add(appendTaken(nil, 5, judge.Taken{Key: storage.OrderKey("a", "b", "c", "d"), Position: 6}), appendCommitted(nil, 5, judge.Committed{ID: "id", First: 5, N: 2}))
	f.Fuzz(func(t *testing.T, keys, commits []byte) {
		row, err := decodeKeyRow(5, keys, commits)
		if err != nil {
			return
		}
		var k, c []byte
		for _, v := range row.keys {
			k = appendTaken(k, 5, v)
		}
		for _, v := range row.commits {
			c = appendCommitted(c, 5, v)
		}
		again, err := decodeKeyRow(5, k, c)
		if err != nil || len(again.keys) != len(row.keys) || len(again.commits) != len(row.commits) {
			t.Fatalf("encoded again: %v", err)
		}
	})
}
