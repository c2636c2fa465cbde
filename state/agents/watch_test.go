package agents

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestAgentsFound: agents that nobody named are read only from a directory that belongs to the
// owner of the data directory, and is not writable for everybody.
func TestAgentsFound(t *testing.T) {
	data, other := t.TempDir(), "/"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		other = t.TempDir()
		must(os.Chown(other, 65534, -1))
	}
	own, shared, link := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "agents")
	must(errors.Join(os.Chmod(own, 0o755), os.Chmod(shared, 0o777), os.Symlink(own, link)))
	for dir, want := range map[string]bool{own: true, other: false, shared: false, link: false, filepath.Join(own, "none"): false} {
		if got := sameOwner(dir, data); got != want {
			t.Errorf("%s: %v", dir, got)
		}
	}
	must(os.WriteFile(filepath.Join(shared, "shop.yaml"), []byte("name: shop\ndescription: Sells.\n"), 0o600))
	for owner, want := range map[string]int{data: 0, "": 1} {
		pushed := 0
		w := &Watcher{
			Dir: shared, Owner: owner, Known: func(string) bool { return false }, Log: slog.New(slog.DiscardHandler),
			Push: func(context.Context, *Revision) error { pushed++; return nil },
		}
		if w.Start(t.Context()); pushed != want {
			t.Errorf("owner %q: pushed %d times", owner, pushed)
		}
	}
}
