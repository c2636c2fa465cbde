package intents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParseKeepsNothing: the caller may reuse its buffer.
func TestParseKeepsNothing(t *testing.T) {
	for _, prefix := range []string{"", " "} { // fast and slow path
		raw := []byte(prefix + plainIntent())
		u, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw {
			raw[i] = 'x'
		}
		if canonical, err := Canonical(u.Bytes()); err != nil || !bytes.Equal(canonical, u.Bytes()) {
			t.Errorf("%q: its Bytes are not canonical: %v", raw, err)
		}
		if IntentID(u.header, u.canonical) != u.ID() || !json.Valid(u.Bytes()) {
			t.Error("the intent has changed with the buffer")
		}
	}
}

func TestLargestIntent(t *testing.T) {
	fill := func(n int) []byte {
		return []byte(signed(vTask, envelopeOf(func(o object) { lookup(o, "intent")["args"] = object{"s": strings.Repeat("x", n)} })))
	}
	room := MaxSize - len(fill(0))
	u, err := Parse(fill(room))
	if err != nil {
		t.Fatal(err)
	}
	if len(u.Bytes()) != MaxSize {
		t.Errorf("%d bytes", len(u.Bytes()))
	}
	if _, err := Parse(fill(room + 1)); CodeOf(err) != PayloadTooLarge {
		t.Errorf("one more: %v", err)
	}
}

// FuzzParse: never panics; all accepted spellings are one envelope.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(vectorFolder, "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var v vector
		if err := json.Unmarshal(text, &v); err != nil {
			f.Fatal(err)
		}
		if len(v.Raw) < 8<<10 {
			f.Add(append([]byte(v.Raw), v.Intent...))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		u, err := Parse(raw)
		if err != nil {
			if CodeOf(err) == Internal {
				t.Errorf("not a refusal: %v", err)
			}
			return
		}
		again, err := Parse(u.Bytes())
		if err != nil || again.ID() != u.ID() || !bytes.Equal(again.Bytes(), u.Bytes()) {
			t.Errorf("%q parses to %s, its Bytes to %v, %v", raw, u.ID(), again, err)
		}
		if canonical, err := Canonical(u.Bytes()); err != nil || !bytes.Equal(canonical, u.Bytes()) {
			t.Errorf("%q: its Bytes are not canonical: %v", raw, err)
		}
		if IntentID(u.header, u.canonical) != u.ID() {
			t.Errorf("intent_id %s is not of header and payload", u.ID())
		}
	})
}

// FuzzHeader: a protected header that is accepted has one spelling.
func FuzzHeader(f *testing.F) {
	f.Add(b64.EncodeToString([]byte(protectedHeader(TypIntent, vTask.KID))))
	f.Add("")
	for _, v := range vectors() {
		var sig struct{ Sig string }
		if err := json.Unmarshal(v.Intent, &sig); err == nil && strings.HasPrefix(v.Name, "header-") {
			header, _, _ := strings.Cut(sig.Sig, "..")
			f.Add(header)
		}
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		kid, err := parseHeader(encoded, TypIntent)
		if err != nil || strings.ContainsAny(encoded, "\r\n") { // assemble refuses line breaks
			return
		}
		if again := b64.EncodeToString([]byte(protectedHeader(TypIntent, kid))); again != encoded {
			t.Errorf("%q and %q name %s", encoded, again, kid)
		}
	})
}
