package mcp

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestContents: what is no text comes as files, with a type that is one.
func TestContents(t *testing.T) {
	want := map[string]*Result{
		"picture": {Data: []byte{}, Files: []File{{Type: "image", MIMEType: "image/png", Data: []byte{0, 0, 0}}}},
		"mixed": {Data: []byte("two lines\nof text"), Text: "two lines\nof text", Files: []File{
			{Type: "resource", MIMEType: "application/octet-stream", URI: "file:///a.gz", Data: []byte{1, 2}},
			{Type: "audio", MIMEType: "audio/wav", Data: []byte{1}},
			{Type: "link", MIMEType: "text/html", Name: "the manual", URI: "https://docs.example/a"},
		}},
	}
	for peer, src := range peers(t) {
		c := dial(t, src, quick())
		for tool, want := range want {
			got, err := c.Call(t.Context(), tool, nil, CallMeta{})
			if err != nil {
				t.Errorf("%s %s: %v", peer, tool, err)
				continue
			}
			if n := len(got.Parts); n != map[string]int{"picture": 1, "mixed": 5}[tool] {
				t.Errorf("%s %s: %d parts", peer, tool, n)
			}
			got.Parts = nil
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s %s (-want +got):\n%s", peer, tool, d)
			}
		}
	}
}

// TestParts: a part passes as it was sent, without its bytes and without members that no protocol
// knows, so that no server can name a file. A part of no known type is a text. One text, alone or as
// the structured content, is in no parts.
func TestParts(t *testing.T) {
	forged := map[string]any{"file_id": "f1", "plan_id": "plan_1", "revision": 1, "step": 1}
	text := func(s string) map[string]any { return map[string]any{"type": "text", "text": s} }
	for name, c := range map[string]struct {
		content    []any
		structured string
		want       []Part
	}{
		"text":            {content: []any{text("a")}},
		"two texts":       {content: []any{text("a"), text("b")}, want: []Part{{JSON: text("a")}, {JSON: text("b")}}},
		"same":            {content: []any{text("{\n \"n\": 1}")}, structured: `{"n":1}`},
		"other words":     {content: []any{text("one")}, structured: `{"n":1}`, want: []Part{{JSON: text("one")}}},
		"annotated":       {content: []any{map[string]any{"type": "text", "text": "a", "annotations": map[string]any{"priority": 1.0}}}, want: []Part{{JSON: map[string]any{"type": "text", "text": "a", "annotations": map[string]any{"priority": 1.0}}}}},
		"forged member":   {content: []any{map[string]any{"type": "text", "text": "a", "content": map[string]any{"blob": forged}}, text("b")}, want: []Part{{JSON: text("a")}, {JSON: text("b")}}},
		"forged data":     {content: []any{map[string]any{"type": "image", "mimeType": "image/png", "data": forged}, text("b")}, want: []Part{{JSON: text(`{"data":{"file_id":"f1","plan_id":"plan_1","revision":1,"step":1},"mimeType":"image/png","type":"image"}`)}, {JSON: text("b")}}},
		"unknown":         {content: []any{map[string]any{"type": "video"}, text("b")}, want: []Part{{JSON: text(`{"type":"video"}`)}, {JSON: text("b")}}},
		"text and blob":   {content: []any{map[string]any{"type": "resource", "resource": map[string]any{"uri": "a:b", "blob": "AQI=", "more": forged}}}, want: []Part{{JSON: map[string]any{"type": "resource", "resource": map[string]any{"uri": "a:b", "blob": nil}}, File: 1}}},
		"picture dropped": {content: []any{map[string]any{"type": "image", "mimeType": "image/png", "data": "no picture"}, text("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"content": c.content})
			if err != nil {
				t.Fatal(err)
			}
			a, _ := readAnswer(raw)
			if c.structured != "" {
				a.structured = json.RawMessage(c.structured)
			}
			res, err := (&tool{}).accept(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, res.Parts); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
