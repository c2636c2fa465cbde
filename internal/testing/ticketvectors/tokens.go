package ticketvectors

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"aob.dev/writ/intents"
)

// nextDigit is the base64url digit whose unused bits differ.
func nextDigit(c byte) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return digits[strings.IndexByte(digits, c)|1:][:1]
}

// tokenVectors carry a ticket that is forged, or no ticket.
func (m *maker) tokenVectors() {
	header, payload := m.intent(same)
	plain := m.ticket(header, payload, func(*intents.Ticket) {})
	good := m.issue(m.Router, plain)
	head, rest, _ := strings.Cut(good, ".")
	body, sig, _ := strings.Cut(rest, ".")
	claims, err := base64.RawURLEncoding.DecodeString(body)
	m.must(err)
	legal := `{"alg":"EdDSA","kid":"` + m.Router.KID + `","typ":"writ-ticket+jws"}`
	swap := func(old, with string) string { return m.signed(strings.Replace(legal, old, with, 1), string(claims)) }
	say := func(old, with string) string {
		if !strings.Contains(string(claims), old) {
			m.must(errors.New("no " + old))
		}
		return m.signed(legal, strings.Replace(string(claims), old, with, 1))
	}
	otherPosition := m.issue(m.Router, m.ticket(header, payload, func(t *intents.Ticket) { t.Position = 8 }))
	_, otherRest, _ := strings.Cut(otherPosition, ".")
	otherBody, _, _ := strings.Cut(otherRest, ".")
	byKid := m.Stranger
	byKid.KID = m.Router.KID
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
		{"forged", "signed by a router that nobody knows", intents.KeyUnknown, m.issue(m.Stranger, plain)},
		{"forged-kid", "signed by a stranger under the router's kid", bad, m.issue(byKid, plain)},
		{"revoked", "signed by a revoked router", intents.KeyRevoked, m.issue(m.Revoked, plain)},
		{"by-gateway", "a gateway issues no tickets", intents.KeyRole, m.issue(m.Gateway, plain)},
		{"by-manager", "a manager issues no tickets", intents.KeyRole, m.issue(m.Manager, plain)},
		{"by-task", "a task issues itself no ticket", intents.KeyRole, m.issue(m.Task, plain)},
		{"by-operator", "an operator issues no tickets", intents.KeyRole, m.issue(m.Operator, plain)},
		{"alg-none", "alg none", bad, swap("EdDSA", "none")},
		{"alg-hs256", "alg HS256", bad, swap("EdDSA", "HS256")},
		{"header-crit", "no extensions", bad, swap(`"kid"`, `"crit":["exp"],"kid"`)},
		{"header-jwk", "no key of its own", bad, swap(`"kid"`, `"jwk":{},"kid"`)},
		{"header-spaces", "one spelling: canonical", bad, swap(",", ", ")},
		{"typ-receipt", "a receipt is no ticket", bad, swap("writ-ticket", "writ-receipt")},
		{"typ-grant", "a grant is no ticket", bad, swap("writ-ticket", "writ-grant")},
		{"typ-intent", "an intent is no ticket", bad, swap("writ-ticket", "writ-intent")},
		{"claims-spaces", "claims are canonical", bad, say(",", ", ")},
		{"claims-unknown", "claims are closed", bad, say(`{"actor"`, `{"a":1,"actor"`)},
		{"claims-case", "names are exact", bad, say(`"position"`, `"positioN"`)},
		{"claims-deep-case", "names are exact, further down too", bad, say(`"task_id"`, `"task_iD"`)},
		{"claims-duplicate", "a claim stands twice", bad, say(`"attempt":1`, `"attempt":1,"attempt":1`)},
		{"claims-position-text", "a number", bad, say(`"position":7`, `"position":"7"`)},
		{"claims-deadline", "a time", bad, say(`"deadline":"`+plain.Deadline.Format(time.RFC3339Nano)+`"`, `"deadline":"soon"`)},
		{"claims-array", "an object", bad, m.signed(legal, "["+string(claims)+"]")},
		{"claims-null", "an object", bad, m.signed(legal, "null")},
		{"claims-empty", "nothing is said", bad, m.signed(legal, "{}")},
	} {
		m.add("ticket-"+v.name, v.doc, v.expect, intents.Dispatch{Header: header, Payload: payload, Ticket: v.token})
	}
	for _, v := range m.incomplete(claims) {
		m.add("ticket-"+v.name, "every claim that a ticket always has is there, and none is null", bad, intents.Dispatch{Header: header, Payload: payload, Ticket: m.signed(legal, v.claims)})
	}
}

// lacking are claims of a ticket of which one is missing or null.
type lacking struct{ name, claims string }

// incomplete are the claims of a whole ticket, each time without one of those that
// every ticket has, or with null in its place.
func (m *maker) incomplete(whole []byte) []lacking {
	var out []lacking
	say := func(name string, path []string, change func(in map[string]any, member string)) {
		var claims map[string]any
		m.must(json.Unmarshal(whole, &claims))
		in := claims
		for _, step := range path[:len(path)-1] {
			next, ok := in[step].(map[string]any)
			if !ok {
				m.must(errors.New("no object " + step))
			}
			in = next
		}
		change(in, path[len(path)-1])
		text, err := json.Marshal(claims)
		m.must(err)
		canonical, err := intents.Canonical(text)
		m.must(err)
		out = append(out, lacking{name + "-" + strings.Join(path, "-"), string(canonical)})
	}
	for _, path := range [][]string{
		{"iss"},
		{"intent_id"},
		{"type"},
		{"executor"},
		{"position"},
		{"attempt"},
		{"deadline"},
		{"policy_digest"},
		{"actor"},
		{"actor", "tenant"},
		{"actor", "user_id"},
		{"scope", "task_id"},
		{"scope", "plan_id"},
		{"scope", "skills"},
		{"scope", "deadline"},
	} {
		say("without", path, func(in map[string]any, member string) { delete(in, member) })
	}
	for _, path := range [][]string{{"deadline"}, {"position"}, {"actor"}, {"actor", "tenant"}, {"scope"}} {
		say("null", path, func(in map[string]any, member string) { in[member] = nil })
	}
	return out
}
