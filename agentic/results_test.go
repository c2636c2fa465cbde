package agentic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
)

// file is a result that is too large to be inline.
func file(lines ...string) result {
	return result{ref: &catalog.Reference{FileID: "f1", SizeBytes: 1 << 20, SHA256: "0", Sample: lines}}
}

func inline(s string) result { return result{data: json.RawMessage(s)} }

func TestShow(t *testing.T) {
	tests := []struct {
		name  string
		r     result
		limit int
		want  stepResult
	}{
		{"nothing", result{}, 10, stepResult{}},
		{"all of it", inline(`[1,2,3]`), 7, stepResult{Result: json.RawMessage(`[1,2,3]`)}},
		{"its first rows", inline(`["aaaa","bbbb","cccc"]`), 16, stepResult{Result: json.RawMessage(`["aaaa","bbbb"]`), Cut: Cut{More: true}, Rows: 3}},
		{"no row fits", inline(`["aaaaaaaaaaaaaaaa"]`), 6, stepResult{Result: json.RawMessage(`"[\"a…"`), Cut: Cut{More: true}}},
		{"no rows", inline(`{"a":"bbbbbbbbbbb"}`), 6, stepResult{Result: json.RawMessage(`"{\"a…"`), Cut: Cut{More: true}}},
		{"a file of rows", file(`{"a":1}`, `{"a":2}`, `{"a":`), 100, stepResult{Result: json.RawMessage(`[{"a":1},{"a":2}]`), Cut: Cut{More: true}}},
		{"a file that is one array", file(`[`, `{"a":1},`, `{"a":2},`), 100, stepResult{Result: json.RawMessage(`[{"a":1},{"a":2}]`), Cut: Cut{More: true}}},
		{"a file of text", file(`name;city`, `a;b`), 100, stepResult{Result: json.RawMessage(`"name;city\na;b"`), Cut: Cut{More: true}}},
		{"an empty file", file(), 100, stepResult{Result: json.RawMessage(`""`), Cut: Cut{More: true}}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, tt.r.show(tt.limit)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestShowFits: however small the rows are, no more is shown than the limit.
func TestShowFits(t *testing.T) {
	for _, row := range []string{"1", `"ab"`, `{"a":1}`} {
		all := "[" + strings.Join(slices.Repeat([]string{row}, 10_000), ",") + "]"
		got := inline(all).show(planShow)
		if len(got.Result) > planShow || len(got.Result) < planShow-2*len(row) || got.Rows != 10_000 {
			t.Errorf("%s: %d bytes of %d, %d rows", row, len(got.Result), planShow, got.Rows)
		}
	}
}

func TestAnswerData(t *testing.T) {
	if got := inline(`[1]`).answer(); string(got) != `[1]` {
		t.Errorf("inline: %s", got)
	}
	want := fmt.Sprintf(`{"file_id":"f1","size_bytes":%d,"sha256":"0","sample":["x"]}`, 1<<20)
	if got := file("x").answer(); string(got) != want {
		t.Errorf("a file: %s", got)
	}
}
