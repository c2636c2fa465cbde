package ledger_test

import (
	"net/http"
	"os"
	"runtime/debug"
	"testing"

	"aob.dev/writ/internal/testing/journaltest"
)

// descriptors that this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// TestRefusedPathsLeaveNothingOpen: asking for what is not there costs no
// descriptor, collected or not.
func TestRefusedPathsLeaveNothingOpen(t *testing.T) {
	w := newWorld(t, journaltest.NewJournal(nil))
	w.start()
	defer w.end()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := descriptors(t)
	for range 100 {
		for _, path := range []string{"/zzz", "/", "/tile/0/999", "/tile/0/x001/000", "/checkpoint/x"} {
			if resp := get(w.ledger, path); resp.Code != http.StatusNotFound {
				t.Fatalf("%s: HTTP %d", path, resp.Code)
			}
		}
	}
	if after := descriptors(t); after > before+10 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
