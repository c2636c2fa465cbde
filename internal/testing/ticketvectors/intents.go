package ticketvectors

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"aob.dev/writ/intents"
)

// intentVectors pair a valid ticket with bytes that it does not name, or name bytes that are not an
// intent of this executor.
func (m *maker) intentVectors() {
	header, payload := m.intent(same)
	ticket := m.issue(m.Router, m.ticket(header, payload, func(*intents.Ticket) {}))
	otherHeader, _ := base64.RawURLEncoding.DecodeString(header)
	for _, v := range []struct{ name, doc, header, payload string }{
		{"args-changed", "another argument", header, strings.Replace(string(payload), `"args":`+string(m.t.Args), `"args":{"changed":true}`, 1)},
		{"user-changed", "another user", header, strings.Replace(string(payload), `"ana"`, `"eve"`, 1)},
		{"member-added", "one member more", header, strings.Replace(string(payload), `{"actor"`, `{"a":1,"actor"`, 1)},
		{"member-twice", "a member stands twice", header, strings.Replace(string(payload), `"ttl_sec":60`, `"ttl_sec":60,"ttl_sec":60`, 1)},
		{"number-inexact", "a number that RFC 8785 would change", header, strings.Replace(string(payload), `"ttl_sec":60`, `"ttl_sec":9007199254740993`, 1)},
		{"empty", "another object", header, "{}"},
		{"null", "no object", header, "null"},
		{"header-missing", "another header", "", string(payload)},
		{"header-of-another", "another signer's header", base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(otherHeader), m.Task.KID, m.Manager.KID, 1))), string(payload)},
		{"header-padded", "another spelling of the header", header + "=", string(payload)},
	} {
		m.add("envelope-"+v.name, v.doc, intents.SignatureInvalid, intents.Dispatch{Header: v.header, Payload: json.RawMessage(v.payload), Ticket: ticket})
	}
	h, p := m.intent(func(b *intents.Body) { b.Intent.Type = elsewhere })
	m.add("envelope-of-another-executor", "a type that this executor does not carry out", intents.UnknownIntent,
		intents.Dispatch{Header: h, Payload: p, Ticket: m.issue(m.Router, m.ticket(h, p, func(t *intents.Ticket) { t.Type = elsewhere }))})
	for name, text := range map[string]string{"unknown-member": strings.Replace(string(payload), `{"actor"`, `{"a":1,"actor"`, 1), "array": "[]", "type-number": strings.Replace(string(payload), `"`+m.t.Types[0]+`"`, `1`, 1)} {
		t := m.ticket(header, []byte(text), func(*intents.Ticket) {})
		m.add("no-envelope-"+name, "the ticket names these bytes, but they are no intent", intents.SchemaInvalid,
			intents.Dispatch{Header: header, Payload: json.RawMessage(text), Ticket: m.issue(m.Router, t)})
	}
}

// dispatchVectors are texts that are no dispatch, and good ones in other words.
func (m *maker) dispatchVectors() {
	header, payload := m.intent(same)
	d := intents.Dispatch{Header: header, Payload: payload, Ticket: m.issue(m.Router, m.ticket(header, payload, func(*intents.Ticket) {}))}
	text, err := json.Marshal(d)
	m.must(err)
	good := string(text)
	for _, v := range []struct {
		name, doc string
		expect    intents.Code
		raw       string
	}{
		{"ok-escaped", "a character spelt as an escape: the canonical bytes count", intents.OK, strings.Replace(good, "ä", `\u00e4`, 1)},
		{"ok-spaced", "white space: the canonical bytes count", intents.OK, strings.ReplaceAll(good, `,"`, `, "`)},
		{"dispatch-empty", "nothing", intents.SchemaInvalid, ""},
		{"dispatch-text", "not JSON", intents.SchemaInvalid, "run it"},
		{"dispatch-array", "an object", intents.SchemaInvalid, "[" + good + "]"},
		{"dispatch-cut", "the end is missing", intents.SchemaInvalid, good[:len(good)-1]},
		{"dispatch-two", "a second one follows", intents.SchemaInvalid, good + good},
		{"dispatch-member", "a member that nobody knows", intents.SchemaInvalid, strings.Replace(good, `{"header"`, `{"now":1,"header"`, 1)},
		{"dispatch-payload-text", "the payload is JSON, not text", intents.SignatureInvalid, `{"header":"` + header + `","payload":"e30","ticket":"` + d.Ticket + `"}`},
		{"dispatch-no-ticket", "an intent by itself moves no executor", intents.SignatureInvalid, `{"header":"` + header + `","payload":` + string(payload) + `}`},
		{"dispatch-no-payload", "a ticket by itself neither", intents.SignatureInvalid, `{"header":"` + header + `","ticket":"` + d.Ticket + `"}`},
	} {
		made := m.add(v.name, v.doc, v.expect, d)
		made.Dispatch, made.Raw = nil, v.raw
	}
}
