package mcp

import (
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
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s %s (-want +got):\n%s", peer, tool, d)
			}
		}
	}
}
