package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// The API keys of the tests, both of tenant acme.
const (
	anaKey = "key-of-ana"     // ana's own
	appKey = "key-of-the-app" // may act for any user
	webKey = "key-of-the-web" // of a chat front end, likewise
)

// core answers as the router does: it refuses an intent that does not verify, that the gateway
// may not sign, or that breaks its schema.
type core struct {
	t   *testing.T
	key intents.Key
	now func() time.Time

	cancelled chan string // plans

	heldArgs string // of the pending intent; empty: none

	mu          sync.Mutex
	apiKeys     map[string]bus.APIKeyReply // by hash
	inForce     bus.RegistryReply
	users       map[string]bus.UserReply // rows: roles allowed
	plans       map[string]*catalog.PlanView
	silent      []bus.SilentPlan
	dreams      []bus.SilentPlan
	patched     []bus.SilentPlan // running runs with a changed graph
	claimed     []bus.SilentPlan
	due         []catalog.Schedule
	schedules   []catalog.Schedule
	intents     []*intents.Envelope
	refuse      map[string]*intents.Answer // by type: the answer instead
	reads       []string                   // paths and parameters
	audited     []audited                  // audit.reads
	shelf       *shelf                     // of artifacts; nil: none
	mayNot      string                     // a capability that no role has
	spentBudget string                     // the exhausted budget
	pins        []intents.Pin              // of the tenant
	agents      []string
}

func newCore(t *testing.T, gateway intents.Signer, now func() time.Time) *core {
	t.Helper()
	roles := []string{"user", "auditor"}
	return &core{
		t: t, key: gateway.VerificationKey(), now: now, cancelled: make(chan string, 100),
		apiKeys: map[string]bus.APIKeyReply{
			intents.Digest([]byte(anaKey)): {Found: true, ID: "k1", Tenant: "acme", UserID: "ana", MaxRoles: roles},
			intents.Digest([]byte(webKey)): {Found: true, ID: "k3", Tenant: "acme", UserID: "web", MaxRoles: roles, MayAssertUser: true, FrontEnd: true},
			intents.Digest([]byte(appKey)): {Found: true, ID: "k2", Tenant: "acme", MaxRoles: roles, MayAssertUser: true},
		},
		users:  map[string]bus.UserReply{"eve": {Disabled: true}, "ops": {Roles: roles, Operator: true}, "bob": {Roles: []string{"user", "admin"}}},
		plans:  map[string]*catalog.PlanView{},
		refuse: map[string]*intents.Answer{},
	}
}

func (c *core) keys() intents.Keys {
	return intents.KeysFunc(func(kid string) (intents.Key, error) {
		if kid != c.key.KID {
			return intents.Key{}, intents.Refuse(intents.KeyUnknown, "", "not the gateway's")
		}
		return c.key, nil
	})
}

func (c *core) endpoints() map[string]bus.Handler {
	return map[string]bus.Handler{
		bus.Intents:           c.intent,
		bus.DirectoryAPIKey:   c.apiKey,
		bus.DirectoryUser:     c.user,
		bus.DirectoryRegistry: c.registry,
		bus.PlansSilent:       c.silentPlans,
	}
}

func (c *core) registry(_ context.Context, data []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !bytes.Contains(data, []byte(`"acme"`)) {
		c.t.Errorf("of another tenant: %s", data)
	}
	return marshal(c.t, c.inForce)
}

func (c *core) apiKey(_ context.Context, data []byte) []byte {
	var q bus.APIKeyRequest
	if err := json.Unmarshal(data, &q); err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return marshal(c.t, c.apiKeys[q.Hash])
}

func (c *core) user(_ context.Context, data []byte) []byte {
	var q bus.UserRequest
	if err := json.Unmarshal(data, &q); err != nil || q.KeyID == "" && q.UserID != "operator" || q.Tenant == "" {
		c.t.Errorf("user request %+v: %v", q, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	row, ok := c.users[q.UserID]
	if !ok {
		row.Roles = q.Roles
	}
	if q.Skills {
		row.Skills = marshal(c.t, c.pins)
	}
	if q.Agents {
		row.Agents = append(row.Agents, c.agents...)
	}
	row.SpentBudget = c.spentBudget
	row.May = q.Capability != "" && q.Capability != c.mayNot
	return marshal(c.t, row)
}

func (c *core) silentPlans(context.Context, []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return marshal(c.t, bus.SilentReply{Plans: c.silent, Due: marshal(c.t, c.due), Dreams: c.dreams, Patched: c.patched, Claimed: c.claimed})
}

func (c *core) intent(_ context.Context, raw []byte) []byte {
	answer, err := c.decide(raw)
	if err != nil {
		answer = &intents.Answer{Code: intents.CodeOf(err), Reason: err.Error()}
		var r *intents.Refusal
		if errors.As(err, &r) && len(r.Violations) > 0 {
			answer.Violations, answer.Pointer = r.Violations, r.Pointer
		}
	}
	return marshal(c.t, answer)
}

func (c *core) decide(raw []byte) (*intents.Answer, error) {
	u, err := intents.Parse(raw)
	if err != nil {
		return nil, err
	}
	e, err := u.Verify(intents.Verifier{Keys: c.keys(), Origin: origin, Now: c.now()})
	if err != nil {
		return nil, err
	}
	row, ok := catalog.Builtin().Lookup(e.Type())
	if !ok || !row.MaySign(e.Signer().Role) {
		return nil, intents.Refuse(intents.KeyRole, "", "not the gateway's to sign")
	}
	schema, err := row.ArgsSchema()
	if err != nil {
		return nil, err
	}
	if v := schema.ValidateBytes(e.Args()); len(v) > 0 {
		return nil, intents.Invalid("/intent/args", v)
	}
	fired := bytes.Contains(e.Args(), []byte(`"schedule":`)) // all gateways use the same key for it
	named := e.Type() == "workflow.start" && bytes.Contains(e.Args(), []byte(`"named"`))
	if fp := e.Constraints().IdempotencyKey == e.Fingerprint(); !fired && !named && fp != (row.Effect == catalog.Idempotent && !row.RandomKey) {
		c.t.Errorf("%s: idempotency key is the fingerprint: %v", e.Type(), fp)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intents = append(c.intents, e)
	if a, ok := c.refuse[e.Type()]; ok {
		return a, nil
	}
	result, err := c.perform(e)
	if err != nil {
		return nil, err
	}
	return &intents.Answer{
		IntentID: e.ID(), TraceID: e.TraceID(), Code: intents.OK, Receipt: "receipt of " + e.Type(),
		Decision: &intents.Decision{Verdict: intents.Allow, Code: intents.OK},
		Outcome:  &intents.Outcome{Status: intents.Done, Code: intents.OK, Result: marshal(c.t, result)},
	}, nil
}

// perform applies an intent as state and executors do. It runs under mu.
func (c *core) perform(e *intents.Envelope) (any, error) {
	p := e.Principal()
	switch e.Type() {
	case "plan.open":
		var a catalog.PlanOpen
		if err := json.Unmarshal(e.Args(), &a); err != nil {
			return nil, err
		}
		c.plans[a.PlanID] = &catalog.PlanView{
			PlanID: a.PlanID, TenantID: p.Tenant, UserID: p.UserID, SessionID: p.Session, TurnID: e.Context().TurnID,
			Status: catalog.PlanPending, Task: a.Task, Steps: []catalog.StepView{}, History: []catalog.Replan{}, CreatedAt: c.now(),
		}
		return *c.plans[a.PlanID], nil
	case "workflow.start":
		var a catalog.WorkflowStart
		if err := json.Unmarshal(e.Args(), &a); err != nil {
			return nil, err
		}
		id := "plan_" + e.ID()[7:33]
		c.plans[id] = &catalog.PlanView{
			PlanID: id, TenantID: p.Tenant, UserID: p.UserID, SessionID: p.Session, TurnID: e.Context().TurnID,
			Status: catalog.PlanPending, Steps: []catalog.StepView{}, History: []catalog.Replan{}, CreatedAt: c.now(),
			Run: &catalog.RunView{RunID: id, WorkflowID: a.WorkflowID, MaxDays: 3},
		}
		return *c.plans[id], nil
	case "cancel":
		var a catalog.PlanGet
		if err := json.Unmarshal(e.Args(), &a); err != nil {
			return nil, err
		}
		plan, ok := c.plans[a.PlanID]
		if !ok || plan.UserID != p.UserID || plan.TenantID != p.Tenant {
			return nil, intents.Refuse(intents.NotFound, "", "no such plan")
		}
		if plan.Status == catalog.PlanComplete {
			return nil, intents.Refuse(intents.MalformedArgs, "", "the plan is closed")
		}
		plan.Status, plan.Failure = catalog.PlanFailed, &catalog.Failure{Reason: "cancelled by " + p.UserID}
		c.cancelled <- a.PlanID
		return *plan, nil
	case typeApprove:
		return catalog.ApproveResult{IntentID: e.StringArg("intent_id"), State: catalog.ApprovalReleased, Approved: []string{p.UserID}}, nil
	case "schedule.put":
		return catalog.ScheduleNext{ID: c.schedules[0].ID, Next: c.schedules[0].Next}, nil
	case "schedule.delete":
		return catalog.Ack{Accepted: true}, nil
	case "soul.put":
		var a catalog.SoulPut
		if err := json.Unmarshal(e.Args(), &a); err != nil {
			return nil, err
		}
		return catalog.Soul{UserID: a.UserID, Persona: &a.Persona}, nil
	case "artifact.put":
		var a catalog.ArtifactPut
		err := json.Unmarshal(e.Args(), &a)
		ref, ok := c.shelf.accept(p.Tenant, e.Context().TurnID, a.From)
		if !ok {
			return nil, intents.Refuse(intents.MalformedArgs, "/intent/args/from", "no such file")
		}
		return catalog.ArtifactPutResult{Artifact: ref, MediaType: a.MediaType, Name: a.Name}, err
	case "artifact.get":
		var a catalog.ArtifactGet
		err := json.Unmarshal(e.Args(), &a)
		return catalog.ArtifactGetResult{Artifact: a.Artifact, URL: "/"}, err
	case "memory.query":
		if e.StringArg("mode") == catalog.Lookup {
			return catalog.MemoryQueryResult{ReadMemoryResult: &catalog.ReadMemoryResult{Key: e.StringArg("text"), Data: json.RawMessage(`{"open":3}`)}}, nil
		}
		return catalog.MemoryQueryResult{Hits: []catalog.MemoryHit{{Key: "acme:" + p.Session + ":t:l", Text: string(e.Args())}}, By: catalog.ByWords}, nil
	case "read_memory":
		var a catalog.ReadMemory
		err := json.Unmarshal(e.Args(), &a)
		return catalog.ReadMemoryResult{Key: a.Key, Data: json.RawMessage(`{"open":3}`)}, err
	case catalog.TypeAuditRead:
		c.audited = append(c.audited, audited{e.ID(), p.UserID, e.StringArg("subject")})
		return catalog.AuditRead{Subject: e.StringArg("subject")}, nil
	case "registry.push":
		return struct{}{}, nil
	default:
		return nil, intents.Refuse(intents.UnknownIntent, "", "not in this test")
	}
}

// change edits a plan.
func (c *core) change(planID string, f func(*catalog.PlanView)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.plans[planID])
}

func (c *core) plan(planID string) (catalog.PlanView, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.plans[planID]; ok {
		return *p, true
	}
	return catalog.PlanView{}, false
}

// submits returns the intents of a type, in order.
func (c *core) submits(typ string) []*intents.Envelope {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.intents), func(e *intents.Envelope) bool { return e.Type() != typ })
}

func (c *core) set(f func(*core)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}
