package audit

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// written are lines as an exporter writes them.
func written(t testing.TB) (out [][]byte, lines []line) {
	t.Helper()
	salt := bytes.Repeat([]byte{7}, 32)
	text := func(s string) Part { return Part{Text: (*Text)(new([]byte(s))), Salt: salt} }
	lines = []line{
		{Record: &Entry{Position: 23, Kind: storage.KindIntent, At: "2026-11-20T10:00:00.000Z", Tag: "ab", Parts: map[string]Part{
			"envelope": text(`{"header":"h","payload":"{\"a\":\"\\u003c\\n<&>\"}","sig":"s"}`), "facts": text("\"é\\\t\n\r\""), "grant": {Digest: "cd"},
		}}},
		{Record: &Entry{Position: 0, Kind: storage.KindControl, At: "x", Tag: "ab", Parts: map[string]Part{"control": text("{\"\u2028\"}")}}},
		{Record: &Entry{Position: 24, Kind: storage.KindOutcome, At: "x", Tag: "ab", Parts: map[string]Part{"outcome": text("{}"), "raw": {Base64: []byte{0xff}, Salt: salt}}}},
		{Leaf: &ledger.Leaf{At: "x", Kind: storage.KindIntent, Position: 3, RecordDigest: "sha256:ab", TenantTag: "ab", V: ledger.LeafVersion}},
		{Tile: &Tile{Around: []byte{}, Hashes: salt, Index: 3}},
		{Blob: &Blob{Digest: "sha256:ab", Data: []byte("<&>")}},
		{End: &End{Lines: 3, SHA256: "ab"}},
	}
	for _, l := range lines {
		raw, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw)
	}
	return out, lines
}

// TestDecodeLine: a line is read as it was written, and in no other spelling.
func TestDecodeLine(t *testing.T) {
	raw, lines := written(t)
	for i, want := range lines {
		got, err := decodeLine(string(raw[i]))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", raw[i], err, diff)
		}
		for _, other := range [][]byte{
			append([]byte(" "), raw[i]...), bytes.TrimSpace(raw[i]), append(bytes.Clone(raw[i]), '\n'), bytes.Replace(raw[i], []byte(":"), []byte(": "), 1),
			bytes.Replace(raw[i], []byte("a"), []byte(`\u0061`), 1), bytes.Replace(raw[i], []byte(`{"`), []byte(`{"x":1,"`), 1),
			bytes.Replace(raw[i], []byte(`"}`), []byte(`","x":1}`), 1), bytes.ToUpper(raw[i]),
		} {
			if _, err := decodeLine(string(other)); err == nil && !bytes.Equal(other, raw[i]) {
				t.Errorf("taken: %s", other)
			}
		}
	}
}

// FuzzDecodeLine: what is accepted is written as it was read.
func FuzzDecodeLine(f *testing.F) {
	raw, _ := written(f)
	for _, line := range raw {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := decodeLine(string(raw))
		if err != nil {
			return
		}
		if again, err := l.encode(); err != nil || !bytes.Equal(again, raw) {
			t.Errorf("%q is written %q, %v", raw, again, err)
		}
	})
}
