package sqlite

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aob.dev/writ/storage"
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
	f.Add(appendTaken(nil, 5, taken{storage.OrderKey("a", "b", "c", "d"), 6}), appendCommitted(nil, 5, committed{"id", 5, 2}))
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

func TestRecentForgetsTheOldest(t *testing.T) {
	r := newRecent()
	for i := range 3*rememberCommits + 5 {
		r.add(committed{fmt.Sprint(i), int64(i), 1})
	}
	if len(r.byID) != rememberCommits || len(r.ring) != rememberCommits {
		t.Fatalf("remembers %d in a ring of %d", len(r.byID), len(r.ring))
	}
	for i, want := range map[int]bool{2*rememberCommits + 4: false, 2*rememberCommits + 5: true, 3*rememberCommits + 4: true} {
		if _, got := r.byID[fmt.Sprint(i)]; got != want {
			t.Errorf("remembers commit %d: %v", i, got)
		}
	}
}
