package agentic

import (
	"testing"

	"aob.dev/writ/intents/catalog"
)

// TestRoutedMessage: a remote agent is told what the classifier has found out.
func TestRoutedMessage(t *testing.T) {
	w := &worker{req: runRequest{UserTask: "Mein Passwort, bitte"}}
	if m := w.messageOf(); m.Summary != "Mein Passwort, bitte" || m.Language != "en" || string(m.Entities) != "{}" {
		t.Errorf("without a route: %+v", m)
	}
	w.req.Route = &catalog.Route{IntentSummary: "Wants a new password", Language: "de", Entities: map[string]string{"account": "work"}}
	if m := w.messageOf(); m.Summary != "Wants a new password" || m.Language != "de" || string(m.Entities) != `{"account":"work"}` {
		t.Errorf("with one: %+v", m)
	}
}
