package edge_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"aob.dev/writ/internal/problem/edge"
)

// TestTap: an answer is passed on with its headers, or kept, and never both.
func TestTap(t *testing.T) {
	answer := func(w http.ResponseWriter, status int) {
		w.Header().Set("X-Of", "handler")
		if status != http.StatusOK { // otherwise the first byte says it
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, "text")
		w.WriteHeader(http.StatusTeapot) // too late
	}
	refused := func(status int, h http.Header) bool { return status >= 400 && h.Get("X-Of") == "handler" }
	for status, kept := range map[int]bool{http.StatusOK: false, http.StatusCreated: false, http.StatusConflict: true} {
		to := httptest.NewRecorder()
		tap := edge.Pass(to, refused)
		answer(tap, status)
		if kept != (tap.Status == status) || kept != (tap.Body.String() == "text") {
			t.Errorf("%d: kept %d %q", status, tap.Status, &tap.Body)
		}
		if !kept && (to.Code != status || to.Body.String() != "text" || to.Header().Get("X-Of") == "") || kept && to.Body.Len()+len(to.Header()) > 0 {
			t.Errorf("%d: passed on %d %q %v", status, to.Code, to.Body, to.Header())
		}
		all := edge.Keep()
		answer(all, status)
		if all.Status != status || all.Body.String() != "text" || all.Header().Get("X-Of") == "" {
			t.Errorf("%d: %d %q", status, all.Status, &all.Body)
		}
	}
}
