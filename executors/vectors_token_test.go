package executors_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"aob.dev/writ/intents"
)

// nextDigit is the base64url digit whose unused bits differ.
func nextDigit(c byte) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return digits[strings.IndexByte(digits, c)|1:][:1]
}

// tokenVectors carry a ticket that is forged, or no ticket.
func (m *maker) tokenVectors() {
	m.Helper()
	header, payload := m.order(same)
	plain := m.ticket(header, payload, func(*intents.Ticket) {})
	good := m.issue(m.router, plain)
	head, rest, _ := strings.Cut(good, ".")
	body, sig, _ := strings.Cut(rest, ".")
	claims, err := base64.RawURLEncoding.DecodeString(body)
	m.must(err)
	legal := `{"alg":"EdDSA","kid":"` + m.router.KID + `","typ":"writ-ticket+jws"}`
	swap := func(old, with string) string { return m.signed(strings.Replace(legal, old, with, 1), string(claims)) }
	say := func(old, with string) string {
		if !strings.Contains(string(claims), old) {
			m.Fatalf("no %s", old)
		}
		return m.signed(legal, strings.Replace(string(claims), old, with, 1))
	}
	otherPosition := m.issue(m.router, m.ticket(header, payload, func(t *intents.Ticket) { t.Position = 8 }))
	_, otherRest, _ := strings.Cut(otherPosition, ".")
	otherBody, _, _ := strings.Cut(otherRest, ".")
	byKid := m.stranger
	byKid.KID = m.router.KID
	bad := intents.SignatureInvalid
	for _, v := range []struct {
		name, doc string
		expect    intents.Code
		token     string
	}{
		{"missing", "no ticket", bad, ""},
		{"text", "no JWS", bad, "let me in"},
		{"two-parts", "no JWS", bad, head + "." + body},
		{"four-parts", "no JWS", bad, good + ".AA"},
		{"detached", "a ticket has its claims within", bad, head + ".." + sig},
		{"json", "no JSON serialization of a JWS", bad, `{"payload":"` + body + `","protected":"` + head + `","signature":"` + sig + `"}`},
		{"padded", "base64url without padding", bad, good + "=="},
		{"line-break", "no line breaks", bad, good + "\n"},
		{"signature-missing", "not signed", bad, head + "." + body + "."},
		{"signature-cut", "63 bytes", bad, good[:len(good)-2]},
		{"signature-zero", "64 zero bytes", bad, head + "." + body + "." + strings.Repeat("A", 86)},
		{"signature-trailing-bits", "one spelling: unused bits must be zero", bad, good[:len(good)-1] + nextDigit(good[len(good)-1])},
		{"claims-swapped", "the claims of another ticket", bad, head + "." + otherBody + "." + sig},
		{"forged", "signed by a router that nobody knows", intents.KeyUnknown, m.issue(m.stranger, plain)},
		{"forged-kid", "signed by a stranger under the router's kid", bad, m.issue(byKid, plain)},
		{"revoked", "signed by a revoked router", intents.KeyRevoked, m.issue(m.revoked, plain)},
		{"by-gateway", "a gateway issues no tickets", intents.KeyRole, m.issue(m.gateway, plain)},
		{"by-manager", "a manager issues no tickets", intents.KeyRole, m.issue(m.manager, plain)},
		{"by-task", "a task issues itself no ticket", intents.KeyRole, m.issue(m.task, plain)},
		{"by-operator", "an operator issues no tickets", intents.KeyRole, m.issue(m.operator, plain)},
		{"alg-none", "alg none", bad, swap("EdDSA", "none")},
		{"alg-hs256", "alg HS256", bad, swap("EdDSA", "HS256")},
		{"header-crit", "no extensions", bad, swap(`"kid"`, `"crit":["exp"],"kid"`)},
		{"header-jwk", "no key of its own", bad, swap(`"kid"`, `"jwk":{},"kid"`)},
		{"header-spaces", "one spelling: canonical", bad, swap(",", ", ")},
		{"typ-receipt", "a receipt is no ticket", bad, swap("writ-ticket", "writ-receipt")},
		{"typ-grant", "a grant is no ticket", bad, swap("writ-ticket", "writ-grant")},
		{"typ-intent", "an order is no ticket", bad, swap("writ-ticket", "writ-intent")},
		{"claims-spaces", "claims are canonical", bad, say(",", ", ")},
		{"claims-unknown", "claims are closed", bad, say(`{"actor"`, `{"a":1,"actor"`)},
		{"claims-case", "names are exact", bad, say(`"position"`, `"positioN"`)},
		{"claims-deep-case", "names are exact, further down too", bad, say(`"task_id"`, `"task_iD"`)},
		{"claims-duplicate", "a claim stands twice", bad, say(`"attempt":1`, `"attempt":1,"attempt":1`)},
		{"claims-position-text", "a number", bad, say(`"position":7`, `"position":"7"`)},
		{"claims-deadline", "a time", bad, say(`"deadline":"2026-11-20T10:00:11Z"`, `"deadline":"soon"`)},
		{"claims-array", "an object", bad, m.signed(legal, "["+string(claims)+"]")},
		{"claims-empty", "nothing is said", bad, m.signed(legal, "{}")},
	} {
		m.add("ticket-"+v.name, v.doc, v.expect, intents.Dispatch{Header: header, Payload: payload, Ticket: v.token})
	}
}

// orderVectors put a good ticket to other bytes than it names, or name bytes that
// are no order of this executor.
func (m *maker) orderVectors() {
	m.Helper()
	header, payload := m.order(same)
	ticket := m.issue(m.router, m.ticket(header, payload, func(*intents.Ticket) {}))
	otherHeader, _ := base64.RawURLEncoding.DecodeString(header)
	for _, v := range []struct{ name, doc, header, payload string }{
		{"args-changed", "another argument", header, strings.Replace(string(payload), `"n":1`, `"n":2`, 1)},
		{"user-changed", "another user", header, strings.Replace(string(payload), `"ana"`, `"eve"`, 1)},
		{"member-added", "one member more", header, strings.Replace(string(payload), `{"actor"`, `{"a":1,"actor"`, 1)},
		{"member-twice", "a member stands twice", header, strings.Replace(string(payload), `"n":1`, `"n":1,"n":1`, 1)},
		{"number-inexact", "a number that RFC 8785 would change", header, strings.Replace(string(payload), `"n":1`, `"n":9007199254740993`, 1)},
		{"empty", "another object", header, "{}"},
		{"null", "no object", header, "null"},
		{"header-missing", "another header", "", string(payload)},
		{"header-of-another", "another signer's header", base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(otherHeader), m.task.KID, m.manager.KID, 1))), string(payload)},
		{"header-padded", "another spelling of the header", header + "=", string(payload)},
	} {
		m.add("order-"+v.name, v.doc, intents.SignatureInvalid, intents.Dispatch{Header: v.header, Payload: json.RawMessage(v.payload), Ticket: ticket})
	}
	elsewhere := func(b *intents.Body) { b.Intent.Type = "exec_python" }
	h, p := m.order(elsewhere)
	m.add("order-of-another-executor", "a type that this executor does not carry out", intents.UnknownIntent,
		intents.Dispatch{Header: h, Payload: p, Ticket: m.issue(m.router, m.ticket(h, p, func(t *intents.Ticket) { t.Type = "exec_python" }))})
	for name, text := range map[string]string{"unknown-member": strings.Replace(string(payload), `{"actor"`, `{"a":1,"actor"`, 1), "array": "[]", "type-number": strings.Replace(string(payload), `"read_lines"`, `1`, 1)} {
		t := m.ticket(header, []byte(text), func(*intents.Ticket) {})
		m.add("order-no-envelope-"+name, "the ticket names these bytes, but they are no order", intents.SchemaInvalid,
			intents.Dispatch{Header: header, Payload: json.RawMessage(text), Ticket: m.issue(m.router, t)})
	}
}

// dispatchVectors are texts that are no dispatch, and good ones in other words.
func (m *maker) dispatchVectors() {
	m.Helper()
	header, payload := m.order(same)
	d := intents.Dispatch{Header: header, Payload: payload, Ticket: m.issue(m.router, m.ticket(header, payload, func(*intents.Ticket) {}))}
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
		{"dispatch-no-ticket", "an order by itself moves no executor", intents.SignatureInvalid, `{"header":"` + header + `","payload":` + string(payload) + `}`},
		{"dispatch-no-payload", "a ticket by itself neither", intents.SignatureInvalid, `{"header":"` + header + `","ticket":"` + d.Ticket + `"}`},
	} {
		made := m.add(v.name, v.doc, v.expect, d)
		made.Dispatch, made.Raw = nil, v.raw
	}
}
