package state

import (
	"encoding/json"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Order is an order as state sees it: its body, its signer, and the decision about it.
type Order struct {
	Type    string
	Args    json.RawMessage
	Context intents.Context
	Tenant  string
	User    string
	TraceID string

	Signer intents.Role // of the key that sealed it
	KID    string       // of that key
	Roles  []string     // of the actor, as decided
	Grant  Grant
	Skill  string        // whose pin the decision saw
	Scopes agents.Scopes `json:",omitzero"` // of a pushed registry
	Next   time.Time     `json:",omitzero"` // of a schedule

	// Budget is what the decision about a new task saw of the tenant's budgets.
	Budget *intents.FactBudget `json:",omitempty"`

	// Breaker is its mark by the breaker of its skill server.
	Breaker intents.BreakerMark `json:",omitempty"`

	// Edges to the node that it begins or skips, as decided.
	Edges []intents.FactEdge `json:",omitempty"`
	// Replay is what an order that repeats a run keeps of it; nil: it was erased, or is none.
	Replay *Replay `json:",omitempty"`
	// Patch of a run's graph, as decided, also when it was held.
	Patch *intents.FactPatch `json:",omitempty"`

	// Node says that the task of a node has sealed it, for Touches.
	Node bool `json:"-"`

	Decision intents.Decision // while it is judged: as far as it has come
	Erased   bool             // the order was: what is here is its summary

	Now      time.Time // that it was decided at
	At       time.Time // of its record
	Position int64     // where it takes effect: of a released order, its release's
	Recorded int64     // where the order itself is
	Released bool      `json:"-"` // it was held and judged then; people have let it go on

	Approvals []intents.Approval `json:"-"` // of a released one: those that it was released by
}

// Grant is what state keeps of an order's grant; the zero value: there is none.
type Grant struct {
	KID      string // of the key that issued it
	Client   string // act.client
	At       time.Time
	Roles    []string
	AMR      []string // how its user was authenticated
	Standing bool
}

// APIKey is the id of the API key that the grant's user came with; empty: none.
func (g Grant) APIKey() string { return intents.KeyOfClient(g.Client) }

// GrantOf is what state keeps of a verified grant.
func GrantOf(token string, g *intents.Grant) Grant {
	if g == nil {
		return Grant{}
	}
	return Grant{
		KID: intents.SignerOf(token), Client: g.Act.Client, At: time.Unix(g.IssuedAt, 0).UTC(),
		Roles: g.Roles, AMR: g.Act.AMR, Standing: g.Standing(),
	}
}

// OrderOf is a verified order that is being decided at a time.
func OrderOf(e *intents.Envelope, roles []string, now time.Time) Order {
	pr := e.Principal()
	return Order{
		Type: e.Type(), Args: e.Args(), Context: e.Context(), Tenant: pr.Tenant, User: pr.UserID, TraceID: e.TraceID(),
		Signer: e.Signer().Role, KID: e.Signer().KID, Roles: roles, Grant: GrantOf(e.GrantToken(), e.Grant()),
		Decision: intents.Decision{IntentID: e.ID()}, Now: now, At: now, Position: storage.Nobody, Recorded: storage.Nobody,
	}
}

// ReadOrder reads an order's record whole.
func ReadOrder(r storage.Record) (o Order, err error) {
	for _, read := range []func(storage.Record) error{o.readDecision, o.readBody, o.readActor} {
		if err := read(r); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *Order) readDecision(r storage.Record) (err error) {
	o.At, o.Now, o.Position, o.Recorded = r.At, r.At, r.Position, r.Position
	o.Decision, err = intents.ReadDecision(r.Parts[storage.PartDecision])
	return err
}

// readBody reads the order itself, or its summary once it was erased.
func (o *Order) readBody(r storage.Record) error {
	b, err := r.Body()
	if err != nil {
		return err
	}
	_, o.Erased = r.Erased[storage.PartOrder]
	if raw, there := r.Parts[storage.PartReplay]; there {
		if err := json.Unmarshal(raw, &o.Replay); err != nil {
			return err
		}
	}
	o.Type, o.Args, o.User, o.Tenant, o.TraceID = b.Intent.Type, b.Intent.Args, b.Actor.UserID, b.Actor.Tenant, b.TraceID
	if b.Context != nil {
		o.Context = *b.Context
	}
	return nil
}

// readNames reads the order without its arguments, which its summary has too.
func (o *Order) readNames(r storage.Record) error {
	if _, there := r.Parts[storage.PartSummary]; !there {
		return o.readBody(r)
	}
	s, err := storage.ReadSummary(r.Parts)
	o.Type, o.User, o.Tenant, o.Context = s.Type, s.User, s.Tenant, s.Context
	return err
}

// readFacts reads what the decision saw.
func (o *Order) readFacts(r storage.Record) error {
	var facts intents.Facts
	if err := json.Unmarshal(r.Parts[storage.PartFacts], &facts); err != nil {
		return err
	}
	o.decidedAt(facts)
	o.Roles, o.Signer, o.KID = facts.Roles, intents.Role(facts.Signer.Role), facts.Signer.KID
	if facts.Skill != nil {
		o.Skill = facts.Skill.Name
	}
	if len(facts.Scopes) > 0 {
		if err := json.Unmarshal(facts.Scopes, &o.Scopes); err != nil {
			return err
		}
	}
	return nil
}

// readActor reads who sealed it and for whom.
func (o *Order) readActor(r storage.Record) error {
	if err := o.readFacts(r); err != nil {
		return err
	}
	raw, ok := r.Parts[storage.PartGrant]
	if !ok {
		return nil
	}
	var token string
	var g intents.Grant
	if err := json.Unmarshal(raw, &token); err != nil {
		return err
	}
	if err := intents.PeekClaims(token, &g); err != nil { // verified before it was recorded
		return err
	}
	o.Grant = GrantOf(token, &g)
	return nil
}

// decidedAt takes the times of a decision, and the sums and breakers of then, from its facts.
func (o *Order) decidedAt(facts intents.Facts) {
	o.Budget, o.Breaker, o.Edges, o.Patch = facts.Budget, facts.Breaker, facts.Edges, facts.Patch
	if now, err := time.Parse(time.RFC3339Nano, facts.Now); err == nil {
		o.Now = now
	}
	o.Next, _ = time.Parse(time.RFC3339Nano, facts.Next) // empty: there is none
}

// shownArgs are the arguments as drivers of the plan see them.
func (o *Order) shownArgs() json.RawMessage {
	if o.Erased {
		return json.RawMessage(`{}`)
	}
	return o.Args
}
