package layering

import (
	"slices"
	"strings"
	"testing"
)

// TestStateSeesRecordsAlone: what the journal's records add up to depends on them, on the vocabulary and on the definitions
// below it. No clock, file or network is asked, so that a router and an auditor come to the same state.
func TestStateSeesRecordsAlone(t *testing.T) {
	imports, err := Imports(root)
	if err != nil {
		t.Fatal(err)
	}
	ours := []string{"intents", "intents/catalog", "schemas", "state/agents", "state/workflows", "storage"}
	for _, to := range imports["state"] {
		inside, is := strings.CutPrefix(to, Module+"/")
		if is && !slices.Contains(ours, inside) || slices.Contains([]string{"os", "io/fs", "net", "net/http", "context", "math/rand/v2", "crypto/rand"}, to) {
			t.Errorf("state imports %s", to)
		}
	}
	if len(imports["state"]) < len(ours) {
		t.Errorf("state imports %v: the test finds nothing", imports["state"])
	}
}
