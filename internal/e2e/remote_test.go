package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"aob.dev/writ/agentic/model"
)

// serveModel serves a model over the chat completions API, for a writ in another
// process. It returns the base URL.
func serveModel(t *testing.T, m model.Model) string {
	t.Helper()
	c := &completions{t: t}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // who asked died while asking
		}
		var req completionRequest
		if err := json.Unmarshal(body, &req); err != nil || len(req.Messages) == 0 {
			t.Errorf("%s: %v", r.URL.Path, err)
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		if len(req.Messages) == 1 { // writ asks at its start what a model takes
			c.stream(w, &model.Response{Text: `{"ready":true}`}, false)
			return
		}
		asked := req.request()
		reply, err := m.Respond(r.Context(), asked, nil)
		if err != nil {
			t.Errorf("%s: %v", asked.Agent, err)
			http.Error(w, "{}", http.StatusInternalServerError)
			return
		}
		if r.Context().Err() == nil { // who asked may be dead
			c.stream(w, reply, false)
		}
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL + "/v1"
}
