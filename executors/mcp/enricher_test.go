package mcp

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const envelopeSchema = `{"type":"object","properties":{"status":{},"payload":{},"domain_type":{},"enricher_id":{},"principal":{}}}`

func TestUnwrap(t *testing.T) {
	declared := &Manifest{Name: "orders", OutputSchema: json.RawMessage(envelopeSchema)}
	plain := &Manifest{Name: "rank"}
	const rest = `"domain_type":"orders","enricher_id":"orders-v1","version":"1.4.0","partial":[{"source":"x","critical":true}],"cache_meta":{"cached":true}`
	ok := &Envelope{Payload: json.RawMessage(`[1]`), DomainType: "orders", EnricherID: "orders-v1", Version: "1.4.0", CacheMeta: json.RawMessage(`{"cached":true}`)}
	noPayload, twoWays, half := *ok, *ok, *ok
	noPayload.Payload, noPayload.Odd = json.RawMessage("null"), []string{"it has no payload"}
	twoWays.Payload, twoWays.Odd = json.RawMessage(`"{\"sum\":1,\"sum\":2}"`), []string{"its payload can be read in two ways, and is given as a text"}
	half.Payload, half.Odd = json.RawMessage(`"[\"\\ud800\"]"`), twoWays.Odd
	partial := *ok
	partial.Partial = true
	tests := []struct {
		name string
		m    *Manifest
		data string
		want *Envelope
		kind error
	}{
		{"ok", declared, `{"status":"ok","payload":[1],"principal":"ana",` + rest + `}`, ok, nil},
		{"partial sources are not inspected", declared, `{"status":"partial","payload":[1],"principal":"ana",` + rest + `}`, &partial, nil},
		{"error", declared, `{"status":"error","payload":null,"principal":"ana",` + rest + `}`, nil, ErrTool},
		{"other principal", declared, `{"status":"ok","payload":[1],"principal":"bob",` + rest + `}`, nil, ErrPrincipal},
		{"other principal of an error", declared, `{"status":"error","payload":[1],"principal":"bob",` + rest + `}`, nil, ErrPrincipal},
		{"case differs", declared, `{"status":"ok","payload":[1],"principal":"Ana",` + rest + `}`, nil, ErrPrincipal},
		{"other case of the member", declared, `{"status":"ok","payload":[1],"Principal":"ana",` + rest + `}`, nil, ErrPrincipal},
		{"principal missing where declared", declared, `{"status":"ok","payload":[1],` + rest + `}`, nil, ErrPrincipal},
		{"principal null where declared", declared, `{"status":"ok","payload":[1],"principal":null,` + rest + `}`, nil, ErrPrincipal},
		{"principal is no text", declared, `{"status":"ok","payload":[1],"principal":["ana"],` + rest + `}`, nil, ErrPrincipal},
		{"two principals", declared, `{"status":"ok","payload":[1],"principal":"bob","principal":"ana",` + rest + `}`, nil, ErrSchema},
		{"unknown status", declared, `{"status":"fine","payload":[1],"principal":"ana",` + rest + `}`, nil, ErrSchema},
		{"no payload", declared, `{"status":"ok","principal":"ana",` + rest + `}`, &noPayload, nil},
		{"a lone surrogate in the payload", declared, `{"status":"ok","payload":["\ud800"],"principal":"ana",` + rest + `}`, &half, nil},
		{"a lone surrogate in the principal", declared, `{"status":"ok","payload":[1],"principal":"ana\ud800",` + rest + `}`, nil, ErrSchema},
		{"a lone surrogate in the type", plain, `{"status":"ok","payload":[1],"domain_type":"\ud800","enricher_id":"x"}`, nil, ErrSchema},
		{"other members in two ways", plain, `{"status":"ok","payload":[1],"debug":{"a":1,"a":2},` + rest + `}`, ok, nil},
		{"declared, yet something else", declared, `{"rows":[]}`, nil, ErrSchema},
		{"declared, yet a text", declared, `words`, nil, ErrSchema},
		{"not declared, right principal", plain, `{"status":"ok","payload":[1],"principal":"ana",` + rest + `}`, ok, nil},
		{"not declared, other principal", plain, `{"status":"ok","payload":[1],"principal":"bob",` + rest + `}`, nil, ErrPrincipal},
		{"not declared, two principals", plain, `{"status":"ok","payload":[1],"principal":"bob",` + rest + `,"principal":"ana"}`, nil, ErrSchema},
		{"not declared, no principal", plain, `{"status":"ok","payload":[1],` + rest + `}`, ok, nil},
		{"not declared, a member twice before the last", plain, `{"status":"ok","domain_type":"bills","domain_type":"orders","payload":[1],"enricher_id":"orders-v1"}`, nil, ErrSchema},
		{"a payload that can be read in two ways", plain, `{"status":"ok","payload":{"sum":1,"sum":2},` + rest + `}`, &twoWays, nil},
		{"no envelope", plain, `{"status":"shipped","rows":[]}`, nil, nil},
		{"a text", plain, `status ok`, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.m.Unwrap([]byte(tt.data), "ana", "")
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if tt.kind == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e := wantKind(t, err, tt.kind)
			if e.Retryable() {
				t.Error("never retried")
			}
			if (errors.Is(tt.kind, ErrPrincipal) || errors.Is(tt.kind, ErrTool)) && e.Reason != "data unavailable" {
				t.Errorf("reason %q", e.Reason)
			}
		})
	}
}

func TestUnwrapWithoutActor(t *testing.T) {
	m := &Manifest{Name: "orders", OutputSchema: json.RawMessage(envelopeSchema)}
	_, err := m.Unwrap([]byte(`{"status":"ok","payload":1,"domain_type":"d","enricher_id":"e","principal":""}`), "", "")
	wantKind(t, err, ErrPrincipal)
}
