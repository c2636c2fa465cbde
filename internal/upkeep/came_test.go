package upkeep

import (
	"slices"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// No record names the blobs of a tenant that came from another log: they stay.
func TestCollectLeavesThoseThatCame(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	came := &catalog.Came{Origin: "writ/elsewhere", Position: 7, Record: intents.Digest(nil), Receipt: "x"}
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme", Came: came}}), intents.OK)
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "own"}}), intents.OK)
	if got := ownTenants(w.Dir); !slices.Equal(got, []string{"default", "own"}) {
		t.Errorf("content is collected of %v", got)
	}
}
