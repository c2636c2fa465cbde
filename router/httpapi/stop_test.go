package httpapi_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/testing/routertest"
)

// TestStopAnswersIntents: the sender of an intent, or of a batch, that is carried out when the
// process stops is answered: with the intent's id, position and decision, and how to ask for it.
func TestStopAnswersIntents(t *testing.T) {
	e := open(t)
	began, answer := make(chan struct{}, 2), make(chan struct{})
	e.Bus.On("skill.find", func(context.Context, routertest.Call) intents.Report {
		began <- struct{}{}
		<-answer
		return routertest.Done(catalog.SkillFindResult{Skills: []catalog.SkillHit{}})
	})
	post := func(path string, raw []byte) problem.Problem {
		t.Helper()
		ctx, stop := context.WithCancelCause(t.Context())
		got := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			w := httptest.NewRecorder()
			e.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(raw)))
			got <- w
		}()
		<-began
		stop(clock.ErrStopping)
		w := <-got
		p := decoded[problem.Problem](t, w)
		if w.Code != http.StatusServiceUnavailable || p.Code != intents.InFlight || !p.Retryable || p.Hint == "" || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
		return p
	}
	raw, id := e.SignID(find(e))
	p := post("/v1/intents", raw)
	if p.IntentID != id || p.Position == nil || p.Decision == nil || p.Decision.Verdict != intents.Allow {
		t.Errorf("%+v", p)
	}
	other := e.Sign(find(e))
	post("/v1/batches", append(append([]byte(`{"atomic":true,"intents":[`), other...), []byte(`]}`)...))
	close(answer)
	if a := decoded[intents.Answer](t, e.post(raw, "Prefer", "wait=30")); a.Code != intents.OK || a.Outcome == nil {
		t.Errorf("the same intent again: %+v", a)
	}
	e.post(other, "Prefer", "wait=30") // until it has ended
}
