package router_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// Intents that change the same directory data at once, on a slow journal, are all executed: one
// that has lost to another is decided again alone.
func TestControlIntentsAtOnce(t *testing.T) {
	w := routertest.New(t, routertest.Options{Open: func(observe storage.Observer) routertest.Journal {
		j, err := sqlite.OpenJournal(t.Context(), t.TempDir(), sqlite.JournalOptions{Observer: observe})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}})
	const callers, each = 8, 25
	signed := make([][][]byte, callers)
	for c := range signed {
		for i := range each {
			signed[c] = append(signed[c], w.Sign(routertest.Intent{By: w.Operator, Type: "admin.put", Args: catalog.AdminPut{
				Tenant: "default", Data: &catalog.Data{Key: fmt.Sprintf("x.k%d", c), Value: json.RawMessage(fmt.Sprint(i))},
			}}))
		}
	}
	var running sync.WaitGroup
	for c := range signed {
		running.Go(func() {
			for i, raw := range signed[c] {
				if a := w.Send(raw); a.Outcome == nil || a.Outcome.Status != intents.Done {
					t.Errorf("caller %d, intent %d: %s", c, i, a.Code)
				}
			}
		})
	}
	running.Wait()
}
