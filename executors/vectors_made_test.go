package executors_test

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/intentstest"
)

var ticketNow = time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC)

// maker makes ticket vectors with fixed keys.
type maker struct {
	*testing.T
	root, router, revoked, gateway, manager, task, operator, stranger intents.Signer
	list                                                              []*ticketVector
}

func newMaker(t *testing.T) *maker {
	t.Helper()
	key := func(role intents.Role, name string) intents.Signer { return intentstest.Signer(t, role, name) }
	return &maker{
		T: t, root: key(intents.RoleRoot, "root"), router: key(intents.RoleRouter, "router"), revoked: key(intents.RoleRouter, "revoked router"),
		gateway: key(intents.RoleGateway, "gateway"), manager: key(intents.RoleManager, "manager"), task: key(intents.RoleTask, "task"),
		operator: key(intents.RoleOperator, "operator"), stranger: key(intents.RoleRouter, "stranger router"),
	}
}

func (m *maker) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *maker) origin() string { return "writ/" + m.root.KID }

func (m *maker) keys() intents.JWKS {
	set := intents.JWKS{Origin: m.origin(), Version: 1}
	for _, s := range []intents.Signer{m.router, m.revoked, m.gateway, m.manager, m.task, m.operator} {
		k := s.VerificationKey()
		k.Revoked = s.KID == m.revoked.KID
		if s.Role == intents.RoleOperator {
			k.Subject, k.Tenant = "bob", "default"
		}
		set.Keys = append(set.Keys, k.ToJWK())
	}
	return set
}

// order is a sealed order in its parts.
func (m *maker) order(change func(b *intents.Body)) (header string, payload []byte) {
	m.Helper()
	b := intents.Body{
		Version: intents.Version,
		Intent:  intents.Intent{Type: "read_lines", Args: json.RawMessage(`{"file_id":"f1","n":1,"start":0}`)},
		Actor:   intents.Actor{UserID: "ana", Tenant: "default", Grant: "e30.e30.AA"},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(ticketNow), TTLSec: 60, Audience: m.origin(), IdempotencyKey: "k1",
		},
		Context: &intents.Context{SessionID: "s", TurnID: "t", PlanID: "plan_1", Revision: 1, Step: 1, TaskID: "task_1", Labels: map[string]string{"note": "ä"}},
	}
	change(&b)
	sealed, _, err := intents.Seal(m.task, b)
	m.must(err)
	var top map[string]json.RawMessage
	var sig string
	m.must(json.Unmarshal(sealed, &top))
	m.must(json.Unmarshal(top["sig"], &sig))
	delete(top, "sig")
	payload, err = json.Marshal(top)
	m.must(err)
	payload, err = intents.Canonical(payload)
	m.must(err)
	header, _, _ = strings.Cut(sig, "..")
	return header, payload
}

func same(*intents.Body) {}

// ticket for an order, changed.
func (m *maker) ticket(header string, payload []byte, change func(t *intents.Ticket)) intents.Ticket {
	t := intents.Ticket{
		Issuer: m.origin(), IntentID: intents.IntentID(header, payload), Type: "read_lines", Executor: "files",
		Actor: intents.Principal{UserID: "ana", Tenant: "default", Roles: []string{"user"}, Session: "s"}, Position: 7, Attempt: 1,
		Deadline: ticketNow.Add(10 * time.Second), PolicyDigest: intents.Digest(nil),
		Scope: &intents.TaskScopeClaim{Task: "task_1", Plan: "plan_1", Revision: 1, Step: 1, Skills: []string{}, Deadline: ticketNow.Add(time.Minute)},
	}
	change(&t)
	return t
}

func (m *maker) issue(key intents.Signer, t intents.Ticket) string {
	m.Helper()
	token, err := intents.IssueTicket(key, t)
	m.must(err)
	return token
}

// signed signs any text as claims under any header.
func (m *maker) signed(header, claims string) string {
	m.Helper()
	b64 := base64.RawURLEncoding
	input := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(claims))
	sig, err := m.router.Key.Sign(nil, []byte(input), crypto.Hash(0))
	m.must(err)
	return input + "." + b64.EncodeToString(sig)
}

func (m *maker) add(name, doc string, expect intents.Code, d intents.Dispatch) *ticketVector {
	v := &ticketVector{Name: name, Doc: doc, Dispatch: &d, Executor: "files", Types: []string{"read_lines", "write_temp"}, Now: ticketNow.Format(time.RFC3339), Expect: expect}
	m.list = append(m.list, v)
	return v
}

// vectors makes all of them: what is in the ticket, who signed it and how, what
// it was put to, and what is no dispatch at all.
func (m *maker) vectors() []*ticketVector {
	m.Helper()
	m.claimVectors()
	m.obligationVectors()
	m.tokenVectors()
	m.orderVectors()
	m.dispatchVectors()
	return m.list
}

func (m *maker) claimVectors() {
	m.Helper()
	header, payload := m.order(same)
	other := intents.IntentID(m.order(func(b *intents.Body) { b.Actor.UserID = "eve" }))
	for _, v := range []struct {
		name, doc string
		expect    intents.Code
		change    func(t *intents.Ticket)
	}{
		{"ok", "a ticket for these bytes", intents.OK, func(*intents.Ticket) {}},
		{"ok-attempt", "a later attempt", intents.OK, func(t *intents.Ticket) { t.Attempt = 3 }},
		{"ok-no-scope", "an order of no task", intents.OK, func(t *intents.Ticket) { t.Scope = nil }},
		{"ok-inputs", "an argument that the router resolved", intents.OK, func(t *intents.Ticket) {
			t.Inputs = []intents.Input{{Pointer: "/data", Value: []byte("[1.50]"), SHA256: intents.Digest([]byte("[1.50]"))}}
		}},
		{"ok-pins", "an approved skill", intents.OK, func(t *intents.Ticket) {
			t.Pins = []intents.Pin{{Skill: "feed", Digest: intents.Digest(nil), Effect: "pure"}}
		}},
		{"ok-deadline", "a millisecond is left", intents.OK, func(t *intents.Ticket) { t.Deadline = ticketNow.Add(time.Millisecond) }},
		{"deadline-now", "no leeway on deadlines", intents.ExecutorTimeout, func(t *intents.Ticket) { t.Deadline = ticketNow }},
		{"deadline-passed", "a millisecond too late", intents.ExecutorTimeout, func(t *intents.Ticket) { t.Deadline = ticketNow.Add(-time.Millisecond) }},
		{"deadline-long-passed", "an hour too late", intents.ExecutorTimeout, func(t *intents.Ticket) { t.Deadline = ticketNow.Add(-time.Hour) }},
		{"deadline-missing", "the zero time has passed", intents.ExecutorTimeout, func(t *intents.Ticket) { t.Deadline = time.Time{} }},
		{"issuer", "a ticket of another log", intents.SignatureInvalid, func(t *intents.Ticket) { t.Issuer = "writ/other" }},
		{"issuer-empty", "a ticket of no log", intents.SignatureInvalid, func(t *intents.Ticket) { t.Issuer = "" }},
		{"executor", "a ticket for another executor", intents.SignatureInvalid, func(t *intents.Ticket) { t.Executor = "python" }},
		{"executor-case", "a ticket for another executor: case matters", intents.SignatureInvalid, func(t *intents.Ticket) { t.Executor = "Files" }},
		{"executor-empty", "a ticket for no executor", intents.SignatureInvalid, func(t *intents.Ticket) { t.Executor = "" }},
		{"type", "a ticket for another type than the order's", intents.SignatureInvalid, func(t *intents.Ticket) { t.Type = "write_temp" }},
		{"type-empty", "a ticket for no type", intents.SignatureInvalid, func(t *intents.Ticket) { t.Type = "" }},
		{"intent-other", "a ticket for another order", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = other }},
		{"intent-empty", "a ticket for no order", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = "" }},
		{"intent-upper", "a digest is lower case", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = strings.ToUpper(t.IntentID) }},
		{"intent-bare", "a digest says of which kind it is", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = t.IntentID[len("sha256:"):] }},
		{"intent-of-payload", "the digest of the payload alone names no signer", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = intents.Digest(payload) }},
	} {
		m.add(v.name, v.doc, v.expect, intents.Dispatch{Header: header, Payload: payload, Ticket: m.issue(m.router, m.ticket(header, payload, v.change))})
	}
}

func (m *maker) obligationVectors() {
	m.Helper()
	header, payload := m.order(same)
	for _, v := range []struct {
		name, doc string
		expect    intents.Code
		list      []intents.Obligation
	}{
		{"ok", "the closed set", intents.OK, []intents.Obligation{
			{Name: "mask", Value: []string{"/secret"}}, {Name: "max_bytes", Value: 1000}, {Name: "ttl_max", Value: 60}, {Name: "driver", Value: "namespaces"}, {Name: "notify", Value: "ops"},
		}},
		{"unknown", "a duty that nobody knows", intents.PolicyDenied, []intents.Obligation{{Name: "watermark", Value: true}}},
		{"unknown-last", "a duty that nobody knows, after one that is known", intents.PolicyDenied, []intents.Obligation{{Name: "max_bytes", Value: 1000}, {Name: "watermark", Value: true}}},
		{"unknown-case", "names are exact", intents.PolicyDenied, []intents.Obligation{{Name: "Mask", Value: []string{"/secret"}}}},
		{"unknown-empty", "a duty without name", intents.PolicyDenied, []intents.Obligation{{Value: true}}},
		{"max-bytes-text", "a number", intents.PolicyDenied, []intents.Obligation{{Name: "max_bytes", Value: "1000"}}},
		{"max-bytes-negative", "from 0", intents.PolicyDenied, []intents.Obligation{{Name: "max_bytes", Value: -1}}},
		{"max-bytes-fraction", "whole", intents.PolicyDenied, []intents.Obligation{{Name: "max_bytes", Value: 1.5}}},
		{"max-bytes-huge", "below 2^31", intents.PolicyDenied, []intents.Obligation{{Name: "max_bytes", Value: 1e12}}},
		{"mask-number", "pointers", intents.PolicyDenied, []intents.Obligation{{Name: "mask", Value: 1}}},
		{"mask-mixed", "pointers", intents.PolicyDenied, []intents.Obligation{{Name: "mask", Value: []any{"/a", 1}}}},
		{"mask-null", "pointers", intents.PolicyDenied, []intents.Obligation{{Name: "mask"}}},
		{"driver-number", "a name", intents.PolicyDenied, []intents.Obligation{{Name: "driver", Value: 1}}},
	} {
		t := m.ticket(header, payload, func(t *intents.Ticket) { t.Obligations = v.list })
		name := "obligation-" + v.name
		if v.expect == intents.OK {
			name = "ok-obligations"
		}
		m.add(name, v.doc, v.expect, intents.Dispatch{Header: header, Payload: payload, Ticket: m.issue(m.router, t)})
	}
}
