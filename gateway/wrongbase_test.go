package gateway

import (
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// TestWrongBaseURL: a client of OpenAI's API whose base URL is not the one that writ serves learns
// the right one in that API's format, with a key and without, whatever it calls.
func TestWrongBaseURL(t *testing.T) {
	w := newWorld(t, nil)
	for _, base := range []string{"", "/v1/v1", "/api", "/openai/v1", "/api/v1"} {
		for path, method := range map[string]string{"/chat/completions": http.MethodPost, "/responses": http.MethodPost, "/models": http.MethodGet, "/models/planner": http.MethodGet, "/embeddings": http.MethodPost, "/completions": http.MethodPost} {
			for _, header := range []http.Header{bearer(), {"X-Api-Key": nil}} {
				var got struct {
					Code, Hint string
					Error      struct{ Message, Code string }
				}
				resp := w.call(method, base+path, `{"model":"planner","messages":[]}`, header, &got)
				if resp.StatusCode != http.StatusNotFound || got.Code != string(intents.NotFound) || got.Error.Code != got.Code ||
					!strings.Contains(got.Error.Message, "set the client's base URL to http://") || !strings.Contains(got.Error.Message, "/v1, which serves") {
					t.Errorf("%s %s%s: %d %+v", method, base, path, resp.StatusCode, got)
				}
			}
		}
	}
	w.refused(http.MethodGet, "/nowhere", "", nil, intents.NotFound, "") // other paths keep their answer
}
