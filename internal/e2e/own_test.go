package e2e

import (
	"net/http"
	"testing"

	"aob.dev/writ/intents"
)

// TestOwn: what the default role user may do with its own things suffices for them, and for
// nothing of others or of the whole tenant.
func TestOwn(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	ana := s.addPerson("default", "ana", "user")
	soul := func(user string) map[string]any {
		return map[string]any{"user_id": user, "persona": map[string]string{"name": "Ada", "system_prompt": "Be brief."}}
	}
	document := func(scope string) map[string]any {
		return map[string]any{"title": "hours", "media_type": "text/plain", "data": "VGhlIHNob3Agb3BlbnMgYXQgbmluZS4=", "scope": scope}
	}
	for _, tt := range []struct {
		method, path string
		body         map[string]any
		want         intents.Code
	}{
		{http.MethodPut, "/agent/souls/default", soul("ana"), ""},
		{http.MethodPut, "/agent/souls/default", soul("ben"), intents.RBACForbidden},
		{http.MethodPut, "/agent/souls/default", soul(""), intents.RBACForbidden},
		{http.MethodPost, "/agent/kb/documents", document("user"), ""},
		{http.MethodPost, "/agent/kb/documents", document("tenant"), intents.RBACForbidden},
	} {
		if status, p := s.call(ana, tt.method, tt.path, tt.body, nil); p.Code != tt.want {
			t.Errorf("%s %s %v: HTTP %d %+v", tt.method, tt.path, tt.body, status, p)
		}
	}
}
