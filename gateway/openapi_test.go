package gateway

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/testing/edgetest"
)

var (
	loadContract sync.Once
	document     *edgetest.Contract
)

// contract is the OpenAPI document against which every request of these tests is checked.
func contract(t *testing.T) *edgetest.Contract {
	t.Helper()
	loadContract.Do(func() { document = edgetest.Load(t) })
	if document == nil {
		t.Fatal("the document is not valid")
	}
	return document
}

// Every route is in the document, and every path of the document has a route.
func TestOpenAPIRoutes(t *testing.T) {
	engine := (&Gateway{}).routes()
	var served []string
	for _, r := range engine.Routes() {
		served = append(served, edgetest.Documented(r.Method, r.Path))
	}
	slices.Sort(served)
	if d := cmp.Diff(contract(t).Routes("gateway"), served); d != "" || len(served) == 0 {
		t.Errorf("(-document +served)\n%s", d)
	}
}
