package intents_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// TestReadDispatch: however a message is written, it is read as the same intent, and what is none
// is refused either way.
func TestReadDispatch(t *testing.T) {
	const payload = `{"actor":{"tenant":"default","user_id":"u_1"},"constraints":{"audience":"log","idempotency_key":"k","issued_at":"2026-01-01T00:00:00.000Z","ttl_sec":60},` +
		`"intent":{"args":{"n":1,"text":"a < b"},"type":"read_lines"},"version":"1.0"}`
	d := intents.Dispatch{Header: "aGVhZGVy", Payload: json.RawMessage(payload), Ticket: "a.b.c"}
	sent := d.Encode()
	if same, err := intents.MarshalPlain(d); err != nil || !bytes.Equal(sent, same) {
		t.Fatalf("encoded as %s, and by encoding/json as %s (%v)", sent, same, err)
	}
	id := intents.IntentID(d.Header, d.Payload)
	want, err := intents.ReadBody(d.Payload)
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.ReplaceAll(string(sent), "<", `\u003c`)
	for _, raw := range []string{string(sent), escaped, " " + string(sent), strings.ReplaceAll(string(sent), `"type":"read_lines"`, `"type": "read_lines"`)} {
		got, err := intents.ReadDispatch([]byte(raw))
		if err != nil || got.Header != d.Header || got.Ticket != d.Ticket || !got.Names(id) || got.Names(intents.Digest(nil)) {
			t.Errorf("%s is read as %+v: %v", raw, got, err)
			continue
		}
		if body, err := got.Body(); err != nil || !reflect.DeepEqual(body, want) {
			t.Errorf("%s has the body %+v: %v", raw, body, err)
		}
	}
	for _, raw := range []string{
		``, `{}}`, `[]`, `"x"`, string(sent) + "x", string(sent[:len(sent)-1]),
		strings.Replace(string(sent), `{"header"`, `{"extra":1,"header"`, 1),
		strings.Replace(string(sent), `"header":"aGVhZGVy"`, `"extra":1`, 1),
		strings.Replace(string(sent), `"aGVhZGVy"`, `{"intent":{"args":{}}}`, 1),
		strings.Replace(string(sent), `"a.b.c"`, `1`, 1),
	} {
		if got, err := intents.ReadDispatch([]byte(raw)); err == nil {
			t.Errorf("%s is read as %+v", raw, got)
		}
	}
	for _, other := range []string{`1`, `[]`, `"text"`, `{}`, `{"intent":{}}`, `{"intent":{"args":1}}`, `null`} {
		d.Payload = json.RawMessage(other)
		got, err := intents.ReadDispatch(d.Encode())
		if err != nil {
			t.Errorf("a message with the payload %s: %v", other, err)
			continue
		}
		if body, err := got.Body(); err == nil {
			t.Errorf("the payload %s has the body %+v", other, body)
		}
	}
}
