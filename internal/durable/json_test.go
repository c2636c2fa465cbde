package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// TestJSON: what is written is read. A missing file is no error, and a damaged one or,
// where that is asked, one with an unknown member is.
func TestJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "doc.json")
	var got struct{ A int }
	if there, err := ReadJSON(path, &got); there || err != nil {
		t.Errorf("missing: %v %v", there, err)
	}
	must(t, WriteJSON(path, map[string]int{"A": 1, "B": 2}))
	if there, err := ReadJSON(path, &got); !there || err != nil || got.A != 1 {
		t.Errorf("%v %v %+v", there, err, got)
	}
	if _, err := ReadExactJSON(path, &got); err == nil {
		t.Error("an unknown member is accepted")
	}
	must(t, os.WriteFile(path, []byte(`{"A":`), 0o600))
	if there, err := ReadJSON(path, &got); !there || err == nil {
		t.Errorf("damaged: %v %v", there, err)
	}
}
