package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

func header(t *testing.T, bundle []byte) audit.Header {
	t.Helper()
	line, _, _ := bytes.Cut(bundle, []byte("\n"))
	var l struct {
		Bundle audit.Header `json:"bundle"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		t.Fatal(err)
	}
	return l.Bundle
}

func decision(t *testing.T, r storage.Record) intents.Decision {
	t.Helper()
	var d intents.Decision
	if err := json.Unmarshal(r.Parts[storage.PartDecision], &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func partDigest(p audit.Part) string {
	sum := sha256.Sum256(append(bytes.Clone(p.Salt), *p.Text...))
	return hex.EncodeToString(sum[:])
}

// resum puts a last line that fits in place of the old one.
func resum(t testing.TB, lines [][]byte) []byte {
	t.Helper()
	body := bytes.Join(lines[:len(lines)-1], nil)
	sum := sha256.Sum256(body)
	return append(body, encode(t, map[string]audit.End{"end": {Lines: int64(len(lines) - 1), SHA256: hex.EncodeToString(sum[:])}})...)
}

// TestMalformed: what is no bundle is reported as such, and nothing panics.
func TestMalformed(t *testing.T) {
	for _, raw := range []string{
		"", "\n", "{}\n", "{\"bundle\":{}}\n", "null\n", "\x1f\x8b", "{\"bundle\":{\"v\":1}}\n", "{\"end\":{\"lines\":0,\"sha256\":\"\"}}\n",
		`{"bundle":{"complete":true,"consistency":[],"first":"","from":0,"last":"","origin":"writ/x","size":1,"v":1}}` + "\n",
	} {
		r, err := audit.Verify(t.Context(), bytes.NewReader([]byte(raw)), audit.Options{Replay: true})
		if err == nil && r.OK {
			t.Errorf("%q is a bundle", raw)
		}
	}
}

// FuzzVerify: no bundle panics, and none that was changed verifies.
func FuzzVerify(f *testing.F) {
	bundle := small(f)
	lines := bytes.SplitAfter(bundle, []byte("\n"))
	f.Add(bundle)
	for i := range lines {
		f.Add(bytes.Join(lines[:i], nil))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := audit.Verify(t.Context(), bytes.NewReader(raw), audit.Options{Replay: true, Workers: 1})
		if err == nil && r.OK && r.Records == 0 {
			t.Fatal("nothing verifies")
		}
	})
}

// FuzzLine: a bundle in which one line was replaced, with a last line that fits,
// neither panics nor verifies.
func FuzzLine(f *testing.F) {
	bundle := small(f)
	lines := bytes.SplitAfter(bundle, []byte("\n"))
	lines = lines[:len(lines)-1] // nothing follows the last line
	for i, line := range lines {
		f.Add(uint8(i), line)
	}
	f.Fuzz(func(t *testing.T, at uint8, line []byte) {
		i := int(at) % len(lines)
		if bytes.Equal(lines[i], line) || i == len(lines)-1 {
			return
		}
		changed := append([][]byte{}, lines...)
		changed[i] = line
		r, err := audit.Verify(t.Context(), bytes.NewReader(resum(t, changed)), audit.Options{Replay: true, Workers: 1})
		if err == nil && r.OK && bytes.HasPrefix(lines[i], []byte(`{"record"`)) {
			t.Fatalf("line %d may be %q", i, line)
		}
	})
}

// small is a bundle of a handful of records without blobs.
func small(f *testing.F) []byte {
	f.Helper()
	w := newWorld(f)
	clear(w.blobs)
	w.Pin("earthquake_feed", catalog.Pure)
	w.plan(0)
	return w.export(w.Journal, audit.Selection{})
}
