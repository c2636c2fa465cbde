// Package executortest sends handlers real intents in process: signed, with a ticket that a
// router's key signed, answered by an executors.Service. Input and output are checked against the
// schemas of the type.
package executortest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/ticketvectors"
)

// Origin is the log origin of every intent here.
const Origin = "writ/test"

// Executor is one executor and the keys that its intents are signed with.
type Executor struct {
	Service *executors.Service
	Router  intents.Signer
	Task    intents.Signer
	Name    string
	Now     func() time.Time
	next    int64 // position of the next intent
}

// New makes an executor of handlers, on a clock (nil: the system's).
func New(tb testing.TB, name string, now func() time.Time, handlers map[string]executors.Handler) *Executor {
	tb.Helper()
	if now == nil {
		now = time.Now
	}
	e := &Executor{Router: signer(tb, intents.RoleRouter), Task: signer(tb, intents.RoleTask), Name: name, Now: now, next: 100}
	var err error
	e.Service, err = executors.New(executors.Config{Name: name, Version: "1.0.0", RouterKeys: e.Keys(), Origin: Origin, Now: now}, handlers)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func signer(tb testing.TB, role intents.Role) intents.Signer {
	tb.Helper()
	s, err := intents.GenerateSigner(role)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Keys knows the router's key only.
func (e *Executor) Keys() intents.Keys {
	return intents.KeysFunc(func(kid string) (intents.Key, error) {
		if kid != e.Router.KID {
			return intents.Key{}, intents.Refuse(intents.KeyUnknown, "", "no such key")
		}
		return e.Router.VerificationKey(), nil
	})
}

// Intent is an intent to be sent. Zero members get the usual values.
type Intent struct {
	Type     string
	Args     any
	Context  intents.Context
	Ticket   intents.Ticket // the router's part; Actor, Deadline, Position and Attempt are filled in
	NoScope  bool           // outside a task
	NoPlan   bool           // outside a plan, too
	OfAgent  bool           // in the plan of an agent, which has no revision
	Position int64          // 0: one more than the last
	Key      string         // idempotency key; empty: one that no intent of another position has
}

// Fill completes an intent: tenant acme, user ana, session sess_1, plan plan_1,
// step 1 of revision 1, task task_1, a minute.
func (e *Executor) Fill(in Intent) Intent {
	c, t := &in.Context, &in.Ticket
	c.SessionID = cmp.Or(c.SessionID, "sess_1")
	c.TurnID = cmp.Or(c.TurnID, "turn_1")
	if !in.NoPlan {
		c.PlanID = cmp.Or(c.PlanID, "plan_1")
	}
	t.Actor.Tenant = cmp.Or(t.Actor.Tenant, "acme")
	t.Actor.UserID = cmp.Or(t.Actor.UserID, "ana")
	t.Actor.Session = cmp.Or(t.Actor.Session, c.SessionID)
	if t.Scope == nil && !in.NoScope {
		t.Scope = &intents.TaskScopeClaim{}
	}
	if s := t.Scope; s != nil {
		s.Task = cmp.Or(s.Task, "task_1")
		s.Plan = cmp.Or(s.Plan, c.PlanID)
		if !in.OfAgent {
			s.Revision = cmp.Or(s.Revision, 1)
		}
		s.Step = cmp.Or(s.Step, 1)
		if s.Skills == nil {
			s.Skills = []string{}
		}
		c.TaskID, c.Revision, c.Step = s.Task, s.Revision, s.Step
	}
	if in.Position == 0 {
		e.next++
		in.Position = e.next
	}
	if t.Deadline.IsZero() {
		t.Deadline = e.Now().Add(time.Minute)
	}
	if t.BeginBy.IsZero() {
		t.BeginBy = t.Deadline // a machine under load is no subject of most tests
	}
	t.Issuer, t.Type, t.Executor, t.Position, t.Attempt = Origin, in.Type, e.Name, in.Position, cmp.Or(t.Attempt, 1)
	t.PolicyDigest = intents.Digest(nil)
	in.Key = cmp.Or(in.Key, intents.Digest(fmt.Appendf(nil, "%s %d", in.Type, in.Position)))
	return in
}

// Sign signs the intent and its ticket.
func (e *Executor) Sign(tb testing.TB, in Intent) intents.Dispatch {
	tb.Helper()
	args, err := json.Marshal(in.Args)
	if err != nil {
		tb.Fatal(err)
	}
	signed, id, err := intents.Sign(e.Task, intents.Body{
		Version: intents.Version,
		Intent:  intents.Spec{Type: in.Type, Args: args},
		Actor:   intents.Actor{UserID: in.Ticket.Actor.UserID, Tenant: in.Ticket.Actor.Tenant, Grant: "a.b.c"},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(e.Now()), TTLSec: 60, Audience: Origin, IdempotencyKey: in.Key,
		},
		Context: &in.Context,
	})
	if err != nil {
		tb.Fatal(err)
	}
	header, payload, err := ticketvectors.Parts(signed)
	must(tb, err)
	in.Ticket.IntentID = id
	ticket, err := intents.IssueTicket(e.Router, in.Ticket)
	must(tb, err)
	return intents.Dispatch{Header: header, Payload: payload, Ticket: ticket}
}

// Send answers a dispatch.
func (e *Executor) Send(tb testing.TB, d intents.Dispatch) intents.Report {
	tb.Helper()
	raw, err := json.Marshal(d)
	must(tb, err)
	var r intents.Report
	must(tb, json.Unmarshal(e.Service.Handle(tb.Context(), "", raw), &r))
	return r
}

// Do fills, signs and sends an intent.
func (e *Executor) Do(tb testing.TB, in Intent) intents.Report {
	tb.Helper()
	in = e.Fill(in)
	row, known := catalog.Builtin().Lookup(in.Type)
	if known {
		schema, err := row.ArgsSchema()
		must(tb, err)
		args, err := json.Marshal(in.Args)
		must(tb, err)
		if v := schema.ValidateBytes(args); len(v) > 0 {
			tb.Fatalf("arguments of %s: %v", in.Type, v)
		}
	}
	r := e.Send(tb, e.Sign(tb, in))
	if known && r.Status == intents.Done {
		schema, err := row.ResultSchema()
		must(tb, err)
		if v := schema.ValidateBytes(r.Result); len(v) > 0 {
			tb.Fatalf("result of %s: %v", in.Type, v)
		}
	}
	return r
}

// Must is Do for an intent that ends well, with its result decoded into v.
func (e *Executor) Must(tb testing.TB, in Intent, v any) intents.Report {
	tb.Helper()
	r := e.Do(tb, in)
	if r.Status != intents.Done {
		tb.Fatalf("%s: %s %s %s %s", in.Type, r.Status, r.Code, r.Reason, r.Result)
	}
	if v != nil {
		must(tb, json.Unmarshal(r.Result, v))
	}
	return r
}

// EventPayload is the payload of an event in the report; nil: none.
func EventPayload(tb testing.TB, r intents.Report, event string) map[string]any {
	tb.Helper()
	for _, f := range r.Events {
		if f.Event == event {
			var v map[string]any
			must(tb, json.Unmarshal(f.Payload, &v))
			return v
		}
	}
	return nil
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
