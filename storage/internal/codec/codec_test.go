package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/judge"
)

func bodies() []storage.Entry {
	at := time.UnixMilli(1_800_000_000_123).UTC()
	parts := map[string]json.RawMessage{"envelope": json.RawMessage(`{"a":1}`), "grant": json.RawMessage(`"x"`), "summary": json.RawMessage(`{}`), "decision": json.RawMessage(`{"verdict":"allow"}`)}
	outcome := map[string]json.RawMessage{"outcome": json.RawMessage(`{}`), "result": json.RawMessage(`"secret"`)}
	erased, _ := storage.NewRecord(storage.KindOutcome, at, outcome).Without("result")
	return []storage.Entry{
		{Record: storage.Record{Kind: storage.KindControl, At: at}, Target: storage.NoPosition, Holder: storage.NoPosition},
		{
			Record: storage.NewRecord(storage.KindIntent, at, parts), Take: true, Holder: 1 << 40, Open: true, Target: storage.NoPosition,
			Writes: []storage.Subject{"plan/acme/p", ""},
		},
		{Record: storage.NewRecord(storage.KindOutcome, time.UnixMilli(-5).UTC(), outcome), Target: 0, Holder: storage.NoPosition},
		{Record: erased, Target: 0, Holder: storage.NoPosition},
	}
}

// keyOf gives each slot a key of its own.
func keyOf(slot uint64) (Key, error) { return Key{1, byte(slot)}, nil }

func fresh() (uint64, Key, error) {
	k, err := keyOf(7)
	return 7, k, err
}

func encoded(t testing.TB, e storage.Entry) []byte {
	t.Helper()
	body, err := Append(nil, e, fresh)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestWithoutKey: what is encrypted reads as erased, and the record's digest stays. A changed
// key, digest or ciphertext is a loss.
func TestWithoutKey(t *testing.T) {
	want := bodies()[2]
	body := encoded(t, want)
	if bytes.Contains(body, []byte("secret")) {
		t.Error("the part is in the clear")
	}
	erased, _ := want.Record.Without("result")
	lost := func(uint64) (Key, error) { return Key{}, ErrLost }
	gone := func(uint64) (Key, error) { return Key{}, ErrErased }
	other := func(uint64) (Key, error) { return Key{9}, nil }
	later := errors.New("later")
	changed := bytes.Clone(body)
	changed[len(changed)-1] ^= 1
	digest := bytes.Clone(body)
	digest[bytes.Index(digest, []byte("result"))+len("result")] ^= 1
	for name, c := range map[string]struct {
		body []byte
		key  func(uint64) (Key, error)
		lost bool
	}{"erased": {body, gone, false}, "lost": {body, lost, true}, "another key": {body, other, true}, "changed": {changed, keyOf, true}, "another digest": {digest, keyOf, true}} {
		got, err := Decode(0, 1, c.body, c.key)
		var l *LostError
		if (err != nil) != c.lost || errors.As(err, &l) != c.lost || c.lost && l.Slot != 7 {
			t.Errorf("%s: %v", name, err)
		}
		if name == "another digest" {
			continue
		}
		if d := cmp.Diff(erased, got.Record, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
		if got.Record.Digest() != want.Record.Digest() {
			t.Errorf("%s: another digest", name)
		}
	}
	if _, err := Decode(0, 1, body, func(uint64) (Key, error) { return Key{}, later }); !errors.Is(err, later) {
		t.Errorf("a key that cannot be read: %v", err)
	}
	if slots, err := SlotsOf(0, 1, body); slots != (Slots{Erasable: 7}) || err != nil {
		t.Error(slots, err)
	}
}

// TestKeyOfTransient: the part transient has a key of its own, beside that of erasable parts and of an
// intent that has none. Each of the two is readable without the other's key.
func TestKeyOfTransient(t *testing.T) {
	for name, verdict := range map[string]string{"allowed": "allow", "held": "hold"} {
		e := bodies()[1]
		e.Record = storage.NewRecord(e.Record.Kind, e.Record.At, e.Record.Parts)
		e.Record.Parts[storage.PartTransient] = json.RawMessage(`"secret"`)
		e.Record.Parts[storage.PartDecision] = json.RawMessage(`{"verdict":"` + verdict + `"}`)
		e.Record = storage.NewRecord(e.Record.Kind, e.Record.At, e.Record.Parts)
		next := uint64(7)
		body, err := Append(nil, e, func() (uint64, Key, error) {
			next++
			k, err := keyOf(next - 1)
			return next - 1, k, err
		})
		if err != nil || bytes.Contains(body, []byte("secret")) {
			t.Fatalf("%s: %v, or in the clear", name, err)
		}
		want := Slots{Erasable: 7, Transient: 8}
		if verdict == "hold" {
			want = Slots{Transient: 7}
		}
		if slots, err := SlotsOf(0, 0, body); slots != want || err != nil {
			t.Errorf("%s: %+v, %v", name, slots, err)
		}
		for _, gone := range []uint64{0, want.Erasable, want.Transient} {
			got, err := Decode(0, 0, body, func(slot uint64) (Key, error) {
				if slot == gone {
					return Key{}, ErrErased
				}
				return keyOf(slot)
			})
			left := e.Record
			switch {
			case gone == 0:
			case gone == want.Transient:
				left, _ = left.Without(storage.PartTransient)
			default:
				left, _ = left.Without(left.Erasable()...)
			}
			if d := cmp.Diff(left, got.Record, cmpopts.EquateEmpty()); d != "" || err != nil {
				t.Errorf("%s, without key %d: %v\n%s", name, gone, err, d)
			}
			if got.Record = left; gone == want.Transient { // as a copy stores it again
				if again, err := Decode(0, 0, encoded(t, got), keyOf); err != nil || cmp.Diff(left, again.Record, cmpopts.EquateEmpty()) != "" {
					t.Errorf("%s: stored again: %v", name, err)
				}
			}
		}
	}
}

func TestBodyRoundTrip(t *testing.T) {
	for i, want := range bodies() {
		want.Record.Position = int64(i)
		kind := map[storage.Kind]int{storage.KindIntent: 0, storage.KindOutcome: 1, storage.KindControl: 4}[want.Record.Kind]
		got, err := Decode(int64(i), kind, encoded(t, want), keyOf)
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
		f.Add(0, encoded(f, e))
	}
	f.Add(99, []byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		e, err := Decode(7, kind, body, keyOf)
		if err != nil {
			return
		}
		body, err = Append(nil, e, fresh)
		if err != nil {
			return // one of which some parts are erased
		}
		again, err := Decode(7, kind, body, keyOf)
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
