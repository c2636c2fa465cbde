package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

// Intent is an intent as state sees it: its body, its signer, and the decision about it.
type Intent struct {
	Type    string
	Args    json.RawMessage
	Context intents.Context
	Tenant  string
	User    string
	TraceID string

	Signer intents.Role // of the key that signed it
	KID    string       // of that key
	Roles  []string     // of the actor, as decided
	Grant  Grant
	Skill  string        // whose pin the decision read
	Pin    string        `json:",omitempty"` // the pin's digest
	Scopes agents.Scopes `json:",omitzero"`  // of a pushed registry
	Next   time.Time     `json:",omitzero"`  // of a schedule

	// Budget is the usage that the decision about a new task read.
	Budget *intents.BudgetInput `json:",omitempty"`

	// OpenAgents are the agents whose breaker is open. While an intent is judged these may be all
	// open skill servers of the tenant; a record has those that its decision saw.
	OpenAgents []string `json:",omitempty"`

	// Edges to the node that it begins or skips, as decided.
	Edges []intents.EdgeInput `json:",omitempty"`
	// Replay is what an intent that repeats a run retains of it; nil if it was erased or there
	// is none.
	Replay *Replay `json:",omitempty"`
	// Patch of a run's graph, as decided, also if the intent was held.
	Patch *intents.PatchInput `json:",omitempty"`

	// Sources that the task which signed it had read.
	Sources []intents.Source `json:",omitempty"`

	// Node: the task of a node has signed it; for Writes.
	Node bool `json:"-"`

	Decision intents.Decision // while it is judged: as far as known
	Erased   bool             // the intent was erased: this is its summary

	Now      time.Time // time of its decision
	At       time.Time // of its record
	Position int64     // where it takes effect: the release's position for a released intent
	Recorded int64     // position of the intent itself
	Released bool      `json:"-"` // it was held when it was judged; people have released it

	Approvals []intents.Approval `json:"-"` // of a released intent: those that released it
	Standing  string             `json:"-"` // that let it through: see View.Standing
}

// Grant is what state retains of an intent's grant; the zero value: none.
type Grant struct {
	KID      string // of the key that issued it
	Client   string // act.client
	At       time.Time
	Roles    []string
	AMR      []string // authentication methods of its user
	Standing bool
}

// Caller is the id of the API key of the grant's user, or the CallerByToken; empty if none.
func (g Grant) Caller() string { return intents.CallerOf(g.Client) }

// GrantOf returns what state retains of a verified grant.
func GrantOf(token string, g *intents.Grant) Grant {
	if g == nil {
		return Grant{}
	}
	return Grant{
		KID: intents.SignerOf(token), Client: g.Act.Client, At: time.Unix(g.IssuedAt, 0).UTC(),
		Roles: g.Roles, AMR: g.Act.AMR, Standing: g.Standing(),
	}
}

// IntentOf is a verified intent that is being decided at a time.
func IntentOf(e *intents.Envelope, roles []string, now time.Time) Intent {
	pr := e.Principal()
	return Intent{
		Type: e.Type(), Args: e.Args(), Context: e.Context(), Tenant: pr.Tenant, User: pr.UserID, TraceID: e.TraceID(),
		Signer: e.Signer().Role, KID: e.Signer().KID, Roles: roles, Grant: GrantOf(e.GrantToken(), e.Grant()),
		Decision: intents.Decision{IntentID: e.ID()}, Now: now, At: now, Position: storage.NoPosition, Recorded: storage.NoPosition,
	}
}

// ReadIntent reads an intent's record completely.
func ReadIntent(r storage.Record) (o Intent, err error) {
	err = cmp.Or(o.readDecision(storage.Entry{Record: r}), o.readBody(r), o.readActor(r))
	return o, err
}

func (o *Intent) readDecision(e storage.Entry) (err error) {
	r := e.Record
	o.At, o.Now, o.Position, o.Recorded = r.At, r.At, r.Position, r.Position
	if e.Decision != nil {
		o.Decision = *e.Decision
		return nil
	}
	o.Decision, err = intents.ReadDecision(r.Parts[storage.PartDecision])
	return err
}

// Recorded is an intent as a record has it, of which the caller has read these parts.
func Recorded(r storage.Record, b intents.Body, d intents.Decision, inputs intents.DecisionInputs, grant string) (Intent, error) {
	o := Intent{Decision: d, Now: r.At, At: r.At, Position: r.Position, Recorded: r.Position}
	return o, cmp.Or(o.takeBody(r, b), o.takeInputs(inputs), o.takeGrant(grant))
}

// readBody reads the intent itself, or its summary once it was erased.
func (o *Intent) readBody(r storage.Record) error {
	b, err := r.Body()
	if err != nil {
		return err
	}
	return o.takeBody(r, b)
}

func (o *Intent) takeBody(r storage.Record, b intents.Body) error {
	_, o.Erased = r.Erased[storage.PartEnvelope]
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

// errOlder refuses a log that another build has written.
var errOlder = errors.New("the record has no summary: the log is of an older form, so begin a new data directory")

// readNames reads the intent without its arguments, which its summary contains too.
func (o *Intent) readNames(e storage.Entry) (err error) {
	s := e.Summary
	if s == nil {
		if _, there := e.Record.Parts[storage.PartSummary]; !there {
			return errOlder
		}
		var read storage.Summary
		if read, err = storage.ReadSummary(e.Record.Parts); err != nil {
			return err
		}
		s = &read
	}
	o.Type, o.User, o.Tenant, o.Context = s.Type, s.User, s.Tenant, s.Context
	return nil
}

// readInputs reads the inputs of the decision.
func (o *Intent) readInputs(r storage.Record) error {
	inputs, err := intents.ReadInputs(r.Parts[storage.PartInputs])
	if err != nil {
		return err
	}
	return o.takeInputs(inputs)
}

func (o *Intent) takeInputs(inputs intents.DecisionInputs) error {
	o.decidedAt(inputs)
	o.Roles, o.Signer, o.KID = inputs.Roles, intents.Role(inputs.Signer.Role), inputs.Signer.KID
	if inputs.Skill != nil {
		o.Skill, o.Pin = inputs.Skill.Name, inputs.Skill.Digest
	}
	if inputs.Task != nil {
		o.Sources = inputs.Task.Sources
	}
	if len(inputs.Scopes) > 0 {
		if err := json.Unmarshal(inputs.Scopes, &o.Scopes); err != nil {
			return err
		}
	}
	return nil
}

// readActor reads who signed the intent and for whom.
func (o *Intent) readActor(r storage.Record) error {
	if err := o.readInputs(r); err != nil {
		return err
	}
	raw, ok := r.Parts[storage.PartGrant]
	if !ok {
		return nil
	}
	token, err := storage.ReadGrant(raw)
	if err != nil {
		return err
	}
	return o.takeGrant(token)
}

func (o *Intent) takeGrant(token string) error {
	if token == "" {
		return nil
	}
	var g intents.Grant
	if err := intents.PeekClaims(token, &g); err != nil { // verified before it was recorded
		return err
	}
	o.Grant = GrantOf(token, &g)
	return nil
}

// decidedAt takes the times of a decision, and the budgets and open agents at that time, from
// its inputs.
func (o *Intent) decidedAt(inputs intents.DecisionInputs) {
	o.Standing = inputs.Standing
	o.Budget, o.OpenAgents, o.Edges, o.Patch = inputs.Budget, inputs.OpenAgents, inputs.Edges, inputs.Patch
	if now, err := time.Parse(time.RFC3339Nano, inputs.Now); err == nil {
		o.Now = now
	}
	o.Next, _ = time.Parse(time.RFC3339Nano, inputs.Next) // empty: none
}

// shownArgs are the arguments as the plan's drivers see them.
func (o *Intent) shownArgs() json.RawMessage {
	if o.Erased {
		return json.RawMessage(`{}`)
	}
	return o.Args
}
