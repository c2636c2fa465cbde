package ticketvectors

import (
	"strings"
	"time"

	"aob.dev/writ/intents"
)

func (m *maker) claimVectors() {
	header, payload := m.intent(same)
	other := intents.IntentID(m.intent(func(b *intents.Body) { b.Actor.UserID = "eve" }))
	for _, v := range []struct {
		name, doc string
		expect    intents.Code
		change    func(t *intents.Ticket)
	}{
		{"ok", "a ticket for these bytes", intents.OK, func(*intents.Ticket) {}},
		{"ok-attempt", "a later attempt", intents.OK, func(t *intents.Ticket) { t.Attempt = 3 }},
		{"ok-no-scope", "an intent of no task", intents.OK, func(t *intents.Ticket) { t.Scope = nil }},
		{"ok-inputs", "an argument that the router resolved", intents.OK, func(t *intents.Ticket) {
			t.Inputs = []intents.Input{{Pointer: "/data", Value: []byte("[1.50]"), SHA256: intents.Digest([]byte("[1.50]"))}}
		}},
		{"ok-pins", "an approved skill", intents.OK, func(t *intents.Ticket) {
			t.Pins = []intents.Pin{{Skill: "feed", Digest: intents.Digest(nil), Effect: "pure"}}
		}},
		{"ok-deadline", "a millisecond is left", intents.OK, func(t *intents.Ticket) { t.Deadline = m.t.Now.Add(time.Millisecond) }},
		{"deadline-now", "no leeway on deadlines", intents.ExecutorTimeout, func(t *intents.Ticket) { t.Deadline = m.t.Now }},
		{"deadline-passed", "a millisecond too late", intents.ExecutorTimeout, func(t *intents.Ticket) { t.Deadline = m.t.Now.Add(-time.Millisecond) }},
		{"deadline-long-passed", "an hour too late", intents.ExecutorTimeout, func(t *intents.Ticket) { t.Deadline = m.t.Now.Add(-time.Hour) }},
		{"deadline-missing", "the zero time has passed", intents.ExecutorTimeout, func(t *intents.Ticket) { t.Deadline = time.Time{} }},
		{"ok-begin-leeway", "a second is left for clocks that differ", intents.OK, func(t *intents.Ticket) { t.BeginBy = m.t.Now.Add(time.Second - intents.Leeway) }},
		{"begin-passed", "not begun in time: unstarted, under another ticket it may be", intents.ExecutorTimeout, func(t *intents.Ticket) { t.BeginBy = m.t.Now.Add(-intents.Leeway) }},
		{"begin-missing", "the zero time has passed", intents.ExecutorTimeout, func(t *intents.Ticket) { t.BeginBy = time.Time{} }},
		{"issuer", "a ticket of another log", intents.SignatureInvalid, func(t *intents.Ticket) { t.Issuer = "writ/other" }},
		{"issuer-empty", "a ticket of no log", intents.SignatureInvalid, func(t *intents.Ticket) { t.Issuer = "" }},
		{"executor", "a ticket for another executor", intents.SignatureInvalid, func(t *intents.Ticket) { t.Executor = "another" }},
		{"executor-case", "a ticket for another executor: case matters", intents.SignatureInvalid, func(t *intents.Ticket) { t.Executor = strings.ToUpper(t.Executor) }},
		{"executor-empty", "a ticket for no executor", intents.SignatureInvalid, func(t *intents.Ticket) { t.Executor = "" }},
		{"type", "a ticket for another type than the intent's", intents.SignatureInvalid, func(t *intents.Ticket) { t.Type = m.other() }},
		{"type-empty", "a ticket for no type", intents.SignatureInvalid, func(t *intents.Ticket) { t.Type = "" }},
		{"intent-other", "a ticket for another intent", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = other }},
		{"intent-empty", "a ticket for no intent", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = "" }},
		{"intent-upper", "a digest is lower case", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = strings.ToUpper(t.IntentID) }},
		{"intent-bare", "a digest says of which kind it is", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = t.IntentID[len("sha256:"):] }},
		{"intent-of-payload", "the digest of the payload alone names no signer", intents.SignatureInvalid, func(t *intents.Ticket) { t.IntentID = intents.Digest(payload) }},
	} {
		m.add(v.name, v.doc, v.expect, intents.Dispatch{Header: header, Payload: payload, Ticket: m.issue(m.Router, m.ticket(header, payload, v.change))})
	}
}

func (m *maker) obligationVectors() {
	header, payload := m.intent(same)
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
		m.add(name, v.doc, v.expect, intents.Dispatch{Header: header, Payload: payload, Ticket: m.issue(m.Router, t)})
	}
}
