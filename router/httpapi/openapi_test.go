package httpapi_test

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/internal/testing/edgetest"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/schemas"
)

var (
	loadContract sync.Once
	document     *edgetest.Contract
)

// contract is the OpenAPI document that every request of these tests must match.
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
	engine, ok := httpapi.New(httpapi.Config{Ledger: noLedger{}, Log: slog.New(slog.DiscardHandler)}).(*gin.Engine)
	if !ok {
		t.Fatal("the interface is not gin's")
	}
	var served []string
	for _, r := range engine.Routes() {
		if !strings.HasPrefix(r.Path, readapi.Path) { // of gateways
			served = append(served, edgetest.Documented(r.Method, r.Path))
		}
	}
	slices.Sort(served)
	if d := cmp.Diff(contract(t).Routes("router"), served); d != "" || len(served) == 0 {
		t.Errorf("(-document +served)\n%s", d)
	}
}

func TestOpenAPIServed(t *testing.T) {
	e := open(t)
	w := e.do(http.MethodGet, "/openapi.json", nil)
	if w.Code != http.StatusOK || w.Body.String() != string(schemas.OpenAPI()) {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

// noLedger is a log without anything in it.
type noLedger struct{ httpapi.Ledger }

func (noLedger) Handler() http.Handler { return http.NotFoundHandler() }
