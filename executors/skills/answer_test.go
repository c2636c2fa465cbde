package skills_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/executortest"
)

// TestPayloadTypes: a payload is shown if the agents of the tenant declare its type, in its
// major version, and it matches. For any other the user learns that there is no data, and the
// operator why.
func TestPayloadTypes(t *testing.T) {
	signed := func(version string) intents.PayloadType {
		return intents.PayloadType{DomainType: "orders", EnricherID: "v1", Version: version, Schema: json.RawMessage(`{"type":"array","items":{"type":"integer"}}`)}
	}
	strict := signed("1.9.0")
	strict.Schema = json.RawMessage(`{"maxItems":1}`)
	for _, tt := range []struct {
		name, enricher, version, payload string
		types                            []intents.PayloadType
		event, why                       string
	}{
		{"no types at all", "v1", "1.0.0", `["x"]`, nil, "", ""},
		{"the type", "v1", "1.2.0", `[1,2]`, []intents.PayloadType{signed("1.2.0")}, "", ""},
		{"a later minor version", "v1", "1.3.0", `[1]`, []intents.PayloadType{signed("1.2.0")}, "", ""},
		{"an earlier minor version", "v1", "1.0.4", `[1]`, []intents.PayloadType{signed("1.2.0")}, "", ""},
		{"one of two majors", "v1", "2.0.0", `[1]`, []intents.PayloadType{signed("1.2.0"), signed("2.1.0")}, "", ""},
		{"an unknown enricher", "v2", "1.2.0", `["s3cret"]`, []intents.PayloadType{signed("1.2.0")}, "envelope.type_mismatch", "no agent declares"},
		{"another payload", "v1", "1.2.0", `["s3cret"]`, []intents.PayloadType{signed("1.2.0")}, "envelope.type_mismatch", "at /0"},
		{"another payload for one of two", "v1", "1.2.0", `[1,2]`, []intents.PayloadType{signed("1.2.0"), strict}, "envelope.type_mismatch", "does not match"},
		{"another major version", "v1", "2.0.0", `["s3cret"]`, []intents.PayloadType{signed("1.2.0")}, "envelope.version_mismatch", "version 1.2.0"},
		{"no version", "v1", "", `[1]`, []intents.PayloadType{signed("1.2.0")}, "envelope.version_mismatch", "version 1.2.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"status":"ok","domain_type":"orders","enricher_id":"` + tt.enricher + `","version":"` + tt.version + `","payload":` + tt.payload + `,"cache_meta":{"key":"k9"}}`
			s := newSite(t, serverOf(tool{name: "x", handle: answer(body, body)}))
			b := open(t, map[string]*site{"s": s})
			var logged bytes.Buffer
			b.Executor = executortest.New(t, skills.Name, b.now, skills.Handlers(skills.Config{
				Registry: b.registry, Blobs: b.blobs, Now: b.now, Log: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}))
			in := call(b.pins(t, "pure"), "x", nil)
			in.Ticket.Types = tt.types
			r := b.Do(t, in)
			if !strings.Contains(logged.String(), "k9") || strings.Contains(string(r.Result), "k9") { // cache_meta is for traces only
				t.Errorf("%s: %s", r.Result, logged.String())
			}
			if tt.event == "" {
				if string(r.Result) != `{"output":`+tt.payload+`}` || strings.Contains(logged.String(), "not shown") {
					t.Errorf("%+v with %s: %s", r, r.Result, logged.String())
				}
				return
			}
			raw, err := json.Marshal(r)
			if err != nil || r.Code != intents.ExecutorFailed || r.Reason != "data unavailable" || r.Retryable || strings.Contains(string(raw), "s3cret") {
				t.Errorf("%s, error %v", raw, err)
			}
			if executortest.EventPayload(t, r, tt.event)["skill_id"] != "x" || !strings.Contains(logged.String(), tt.why) || strings.Contains(logged.String(), "s3cret") || s.calls.Load() != 1 {
				t.Errorf("%s after %d calls: %s", raw, s.calls.Load(), logged.String())
			}
		})
	}
}
