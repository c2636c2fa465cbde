package httpapi_test

import (
	"net/http"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/testing/routertest"
)

// TestVectors: the HTTP interface gives every vector its code as a problem with the code's status,
// and every verified intent passes stage 2: it is refused for its age, or has a record.
func TestVectors(t *testing.T) {
	e := openWith(t, routertest.Options{Root: routertest.VectorRoot(t)})
	e.KnowVectors()
	e.World.Vectors(func(raw []byte) (intents.Code, bool) {
		w := e.post(raw)
		if w.Code == http.StatusOK || w.Code == http.StatusAccepted {
			return decoded[intents.Answer](t, w).Code, true
		}
		p := decoded[problem.Problem](t, w)
		if w.Code != p.Code.Info().Status {
			t.Errorf("%s has status %d", p.Code, w.Code)
		}
		return p.Code, p.Code == intents.ExpiredTTL || p.Code == intents.NotYetValid || e.Recorded(p.IntentID)
	})
}
