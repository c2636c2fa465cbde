// Package ticketvectors makes dispatches that an executor must carry out and ones that
// it must refuse, one failure each, with the code that it must report: for the vectors
// of executors/testdata, and for external executors in any language (package executorcheck).
package ticketvectors

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/intents"
)

// Keys that sign tickets, with and without the right to. Root names the log.
type Keys struct {
	Root, Router, Revoked, Gateway, Manager, Task, Operator, Stranger intents.Signer
}

// NewKeys makes keys for one use.
func NewKeys() (Keys, error) {
	var k Keys
	for _, x := range []struct {
		to   *intents.Signer
		role intents.Role
	}{
		{&k.Root, intents.RoleRoot},
		{&k.Router, intents.RoleRouter},
		{&k.Revoked, intents.RoleRouter},
		{&k.Gateway, intents.RoleGateway},
		{&k.Manager, intents.RoleManager},
		{&k.Task, intents.RoleTask},
		{&k.Operator, intents.RoleOperator},
		{&k.Stranger, intents.RoleRouter},
	} {
		var err error
		if *x.to, err = intents.GenerateSigner(x.role); err != nil {
			return k, err
		}
	}
	return k, nil
}

// Origin of the log that the tickets are of.
func (k Keys) Origin() string { return "writ/" + k.Root.KID }

// JWKS are the keys that an executor is to know: all but the stranger's.
func (k Keys) JWKS() intents.JWKS {
	set := intents.JWKS{Origin: k.Origin(), Version: 1}
	for _, s := range []intents.Signer{k.Router, k.Revoked, k.Gateway, k.Manager, k.Task, k.Operator} {
		key := s.VerificationKey()
		key.Revoked = s.KID == k.Revoked.KID
		if s.Role == intents.RoleOperator {
			key.Subject, key.Tenant = "bob", "default"
		}
		set.Keys = append(set.Keys, key.ToJWK())
	}
	return set
}

// Target is the executor that the vectors are for.
type Target struct {
	Executor string
	Types    []string        // the first is used; there must be one
	Args     json.RawMessage // of that intent, canonical
	Now      time.Time       // whole seconds; deadlines are ten seconds later
}

// Vector is a dispatch with the code that every executor must report.
type Vector struct {
	Name     string            `json:"name"`
	Doc      string            `json:"doc"`
	Dispatch *intents.Dispatch `json:"dispatch,omitempty"`
	Raw      string            `json:"raw,omitempty"` // instead: its exact text
	Executor string            `json:"executor"`
	Types    []string          `json:"types"`
	Now      string            `json:"now"`
	Expect   intents.Code      `json:"expect"`
}

// Bytes is the dispatch as it travels.
func (v *Vector) Bytes() ([]byte, error) {
	if v.Dispatch == nil {
		return []byte(v.Raw), nil
	}
	return json.Marshal(v.Dispatch)
}

// Make makes the vectors: of a ticket's claims, of its signature, of the intent beside
// it, and of texts that are not a dispatch.
func Make(k Keys, t Target) ([]*Vector, error) {
	if t.Executor == "" || len(t.Types) == 0 {
		return nil, errors.New("ticket vectors: an executor and a type are required")
	}
	m := &maker{Keys: k, t: t}
	if header, payload := m.intent(same); m.err == nil {
		m.issue(m.Router, m.ticket(header, payload, func(*intents.Ticket) {}))
	}
	if m.err != nil {
		return nil, m.err // the rest would fail likewise
	}
	m.claimVectors()
	m.obligationVectors()
	m.tokenVectors()
	m.intentVectors()
	m.dispatchVectors()
	return m.list, m.err
}

// maker collects vectors and retains the first error.
type maker struct {
	Keys
	t    Target
	list []*Vector
	err  error
}

func (m *maker) must(err error) {
	if m.err == nil && err != nil {
		m.err = fmt.Errorf("ticket vectors: %w", err)
	}
}

// elsewhere is a type that the executor does not carry out.
const elsewhere = "x.writ-check.elsewhere"

// intent is a signed intent in its parts.
func (m *maker) intent(change func(b *intents.Body)) (header string, payload []byte) {
	b := intents.Body{
		Version: intents.Version,
		Intent:  intents.Spec{Type: m.t.Types[0], Args: m.t.Args},
		Actor:   intents.Actor{UserID: "ana", Tenant: "default", Grant: "e30.e30.AA"},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(m.t.Now), TTLSec: 60, Audience: m.Origin(), IdempotencyKey: "k1",
		},
		Context: &intents.Context{SessionID: "s", TurnID: "t", PlanID: "plan_1", Revision: 1, Step: 1, TaskID: "task_1", Labels: map[string]string{"note": "ä"}},
	}
	change(&b)
	signed, _, err := intents.Sign(m.Task, b)
	m.must(err)
	header, payload, err = Parts(signed)
	m.must(err)
	return header, payload
}

// Parts of a signed intent that a dispatch has.
func Parts(signed []byte) (header string, payload []byte, err error) {
	u, err := intents.Parse(signed)
	if err != nil {
		return "", nil, err
	}
	intent := u.AsRecorded().Signed()
	return intent.Header, []byte(intent.Payload), nil
}

func same(*intents.Body) {}

// ticket for an intent, changed.
func (m *maker) ticket(header string, payload []byte, change func(t *intents.Ticket)) intents.Ticket {
	t := intents.Ticket{
		Issuer: m.Origin(), IntentID: intents.IntentID(header, payload), Type: m.t.Types[0], Executor: m.t.Executor,
		Actor: intents.Principal{UserID: "ana", Tenant: "default", Roles: []string{"user"}, Session: "s"}, Position: 7, Attempt: 1,
		BeginBy: m.t.Now.Add(intents.TicketLife), Deadline: m.t.Now.Add(10 * time.Second), PolicyDigest: intents.Digest(nil),
		Scope: &intents.TaskScopeClaim{Task: "task_1", Plan: "plan_1", Revision: 1, Step: 1, Skills: []string{}, Deadline: m.t.Now.Add(time.Minute)},
	}
	change(&t)
	return t
}

func (m *maker) issue(key intents.Signer, t intents.Ticket) string {
	token, err := intents.IssueTicket(key, t)
	m.must(err)
	return token
}

// signed signs any text as claims under any header.
func (m *maker) signed(header, claims string) string {
	b64 := base64.RawURLEncoding
	input := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(claims))
	sig, err := m.Router.Key.Sign(nil, []byte(input), crypto.Hash(0))
	m.must(err)
	return input + "." + b64.EncodeToString(sig)
}

func (m *maker) add(name, doc string, expect intents.Code, d intents.Dispatch) *Vector {
	v := &Vector{Name: name, Doc: doc, Dispatch: &d, Executor: m.t.Executor, Types: m.t.Types, Now: m.t.Now.Format(time.RFC3339), Expect: expect}
	m.list = append(m.list, v)
	return v
}

// other is another type of the executor, or one of nobody.
func (m *maker) other() string {
	if len(m.t.Types) > 1 {
		return m.t.Types[1]
	}
	return elsewhere
}
