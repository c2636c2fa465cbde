package executors_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

var step = storage.Scope{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 1}

func blobs(t *testing.T) storage.Blobs {
	t.Helper()
	b, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestInlineLimit: below 50,000 bytes inline, from there on a file.
func TestInlineLimit(t *testing.T) {
	b := blobs(t)
	text := func(n int) executors.Content { return executors.Content{Text: strings.Repeat("a", n)} }
	list := func(n int) executors.Content {
		return executors.Content{JSON: json.RawMessage(`"` + strings.Repeat("a", n-2) + `"`)}
	}
	for _, c := range []executors.Content{text(0), text(49_999), list(49_999)} {
		inline, ref, err := executors.InlineOrFile(t.Context(), &executors.Intent{}, b, step, c)
		if err != nil || ref != nil || !json.Valid(inline) {
			t.Errorf("below: %.20s %v %v", inline, ref, err)
		}
	}
	for _, c := range []executors.Content{text(50_000), list(50_000)} {
		inline, ref, err := executors.InlineOrFile(t.Context(), &executors.Intent{}, b, step, c)
		if err != nil || ref == nil || inline != nil || ref.SizeBytes < 50_000 || len(ref.Sample) != 1 || len(ref.Sample[0]) != 2048 {
			t.Errorf("from: %.20s %v %v", inline, ref, err)
		}
	}
}

// TestFileOverInlineLimit: the file is the text as received, else one array element a line,
// and it is the same document.
func TestFileOverInlineLimit(t *testing.T) {
	b := blobs(t)
	row := `{"name":"a, \"b\" [c]","tags":[1,[2,3]],"n":1.50}`
	doc := `{"title":"x","rows":[` + strings.Repeat(row+", ", 1999) + row + `],"none":[],"end":{"list":[1,2]}}`
	received := strings.ReplaceAll(doc, ", {", ",\n{")
	read := func(c executors.Content) (string, []string) {
		_, ref, err := executors.InlineOrFile(t.Context(), &executors.Intent{}, b, step, c)
		if err != nil || ref == nil {
			t.Fatal(ref, err)
		}
		r, file, err := b.Open(t.Context(), step, ref.FileID)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		body, err := io.ReadAll(r)
		if err != nil || int64(len(body)) != ref.SizeBytes || file.SHA256 != ref.SHA256 {
			t.Fatalf("%d bytes, %+v, %v", len(body), ref, err)
		}
		return string(body), ref.Sample
	}
	if body, _ := read(executors.Content{JSON: json.RawMessage(doc), Text: received}); body != received {
		t.Error("the text as received was changed")
	}
	for name, text := range map[string]string{"no text": "", "a summary": "2000 rows", "another document": `{"rows":2000}`} {
		body, sample := read(executors.Content{JSON: json.RawMessage(doc), Text: text})
		var want, got bytes.Buffer
		if err := json.Compact(&want, []byte(doc)); err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&got, []byte(body)); err != nil || !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Errorf("%s: the file is another document: %v", name, err)
		}
		if diff := cmp.Diff([]string{`{"title":"x","rows":[`, row + ",", row + ","}, sample[:3]); diff != "" || len(sample) != 20 {
			t.Errorf("%s: %d lines: %s", name, len(sample), diff)
		}
		if !strings.HasSuffix(body, row+"\n],\"none\":[],\"end\":{\"list\":[\n1,\n2\n]}}\n") {
			t.Errorf("%s: ends with %q", name, body[len(body)-90:])
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("é", 2000) // 4,000 bytes
	wide := strings.Repeat("x", 70_000)
	tests := []struct {
		name, in string
		start, n int
		want     []string
		more     bool
	}{
		{"empty", "", 0, 5, []string{}, false},
		{"one without end", "a", 0, 5, []string{"a"}, false},
		{"one with end", "a\n", 0, 1, []string{"a"}, false},
		{"empty lines", "\n\nb\n", 0, 5, []string{"", "", "b"}, false},
		{"window", "a\nb\nc\nd\n", 1, 2, []string{"b", "c"}, true},
		{"last window", "a\nb\nc\nd", 2, 2, []string{"c", "d"}, false},
		{"beyond", "a\nb\n", 7, 2, []string{}, false},
		{"cut on a character", long + "\nz", 0, 2, []string{long[:2044] + "…", "z"}, false},
		{"longer than the buffer", wide + "\nz", 0, 2, []string{wide[:2045] + "…", "z"}, false},
		{"skips long ones", wide + "\nz", 1, 2, []string{"z"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, more, err := executors.Lines(t.Context(), strings.NewReader(tt.in), tt.start, tt.n)
			if err != nil || more != tt.more {
				t.Errorf("more %t, %v", more, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for _, line := range got {
				if !utf8.ValidString(line) {
					t.Errorf("cut within a character: %q", line[len(line)-4:])
				}
			}
		})
	}
}

// TestLinesStayInline: an answer never reaches 50,000 bytes of JSON, however
// its lines look, and reading on from its end misses nothing.
func TestLinesStayInline(t *testing.T) {
	var in strings.Builder
	for i := range 500 {
		in.WriteString(strconv.Itoa(i) + strings.Repeat("\"\x01", 1000) + "\n")
	}
	next, rounds := 0, 0
	for more := true; more; rounds++ {
		var lines []string
		var err error
		lines, more, err = executors.Lines(t.Context(), strings.NewReader(in.String()), next, 1000)
		if err != nil || len(lines) == 0 || !strings.HasPrefix(lines[0], strconv.Itoa(next)) {
			t.Fatalf("at %d: %d lines, %v", next, len(lines), err)
		}
		if raw, _ := json.Marshal(lines); len(raw) >= storage.InlineLimit {
			t.Fatalf("at %d: %d bytes", next, len(raw))
		}
		next += len(lines)
	}
	if next != 500 || rounds < 10 {
		t.Errorf("%d lines in %d rounds", next, rounds)
	}
}
