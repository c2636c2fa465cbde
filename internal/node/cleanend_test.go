package node

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEnded: a node that is told to end says so, and one that ended unasked is
// known by what is missing.
func TestEnded(t *testing.T) {
	n := &Node{cfg: Config{Dir: t.TempDir()}}
	at := func(step string, want bool) {
		t.Helper()
		if err := n.takeEnded(); err != nil {
			t.Fatal(err)
		}
		if n.ended != want {
			t.Errorf("%s: ended %v", step, n.ended)
		}
	}
	at("first start", false)
	n.ended = true // told to
	if err := n.putEnded(); err != nil {
		t.Fatal(err)
	}
	at("after an end as told", true)
	n.ended = false // killed: Close does not come to it, or finds this
	if err := n.putEnded(); err != nil {
		t.Fatal(err)
	}
	at("after a kill", false)
	if _, err := os.Stat(filepath.Join(n.cfg.Dir, endedName)); err == nil {
		t.Error("the mark is still there")
	}
}
