package router

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Subjects of the fold. A decision asserts the last position of each that it read.
const (
	subjectKeys   storage.Subject = "keys"
	subjectPolicy storage.Subject = "policy"
)

const tenantPrefix = "dir/"

func subjectTenant(tenant string) storage.Subject { return storage.Subject(tenantPrefix + tenant) }

func subjectGrants(tenant, sub string) storage.Subject {
	return storage.Subject("grants/" + tenant + "/" + sub)
}

func subjectPlan(tenant, plan string) storage.Subject {
	return storage.Subject("plan/" + tenant + "/" + plan)
}

func subjectOrder(intentID string) storage.Subject { return storage.Subject("order/" + intentID) }

func subjectTask(tenant, task string) storage.Subject {
	return storage.Subject("task/" + tenant + "/" + task)
}

// subjectTaskKey is touched by the step that introduces a key: no second step may.
func subjectTaskKey(kid string) storage.Subject { return storage.Subject("taskkey/" + kid) }

// Directory is the fold of the journal: keys, directory data, plans and tasks,
// as of the last record. It has one writer, the journal's observer,
// and any number of readers.
type Directory struct {
	mu sync.RWMutex // guards everything below

	next    int64   // position after the last folded record
	rests   []int64 // records of administration
	dataAt  int64   // the last position that touched directory data
	last    time.Time
	touched map[storage.Subject]int64

	origin       string
	root         ed25519.PublicKey
	keySet       intents.KeySet
	keySetToken  string
	keys         map[string]intents.Key
	policyDigest string
	// policyRevision is the highest that was ever in force; 0: none had one.
	policyRevision int64
	pushed         *pushed // nil: the policy in force comes from a place, or is the embedded one
	catalog        string
	rules          intents.Rules

	tenants map[string]*tenant
	// retained are the retentions of each tenant; of everyTenant, the default.
	retained map[string][]retention
	apiKeys  map[string]apiKeyRow // by hash; those that are not revoked are also in their tenant, by id
	revoked  map[string]time.Time // "tenant/sub": grants minted before are dead
	plans    map[string]*plan     // "tenant/plan_id"
	open     map[string]int       // open plans by tenant
	openAll  int
	// forgetful: the words of closed plans are dropped (ForgetWords).
	forgetful bool
	tasks     map[string]*task     // "tenant/task_id"
	taskKID   map[string]string    // kid to "tenant/task_id"
	orders    map[int64]*openOrder // open orders of plans, by position
	unknown   map[string]unknown   // indeterminate orders by intent_id, until order.resolve
	holds     holds
	settled   map[int64]string // resolved orders by position: done, failed
	erasures  erasures
	outcome   func(of int64) // told of every outcome, after the fold
	faults    []error        // records that could not be folded; not ready while there are any
}

// tenant is the directory data of one tenant.
type tenant struct {
	roles map[string][]string
	users map[string]catalog.User
	pins  map[string]intents.Pin
	data  map[string]json.RawMessage
	keys  map[string]catalog.APIKey // by id, without revoked ones
}

type apiKeyRow struct {
	catalog.APIKey
	Tenant string
}

// openOrder remembers where an order that waits for its outcome belongs.
type openOrder struct {
	id     string // intent_id
	tenant string
	plan   *plan // nil: an order of no plan
	step   int
	rev    int
	task   string
	typ    string
	fact   *catalog.OrderFact // nil: not told to later drivers
	lost   int                // unclean ends of routers while it was open
}

// unknown is an indeterminate order that an operator may resolve.
type unknown struct {
	position int64
	tenant   string
	plan     *plan
	fact     *catalog.OrderFact
}

// NewDirectory is empty; Observe fills it.
func NewDirectory() *Directory {
	return &Directory{
		touched: make(map[storage.Subject]int64), keys: make(map[string]intents.Key),
		tenants: make(map[string]*tenant), retained: make(map[string][]retention), apiKeys: make(map[string]apiKeyRow),
		revoked: make(map[string]time.Time), plans: make(map[string]*plan), open: make(map[string]int), tasks: make(map[string]*task),
		taskKID: make(map[string]string), orders: make(map[int64]*openOrder), unknown: make(map[string]unknown), settled: make(map[int64]string), holds: newHolds(),
		erasures: erasures{blobs: make(map[int64]bool)},
	}
}

// Observe folds one durable record; it is the journal's storage.Observer. Records
// come in order, once. A record that cannot be folded is remembered: the router
// then refuses to be ready, since every later decision could be wrong.
func (d *Directory) Observe(e storage.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fold(e); err != nil {
		d.faults = append(d.faults, fmt.Errorf("fold record %d: %w", e.Record.Position, err))
	}
	if e.Record.Kind == storage.KindOutcome && d.outcome != nil {
		d.outcome(e.Of)
	}
	for _, s := range e.Touches {
		d.touched[s] = e.Record.Position
		if strings.HasPrefix(string(s), tenantPrefix) {
			d.dataAt = e.Record.Position
		}
	}
	d.next = e.Record.Position + 1
	if e.Record.At.After(d.last) { // of early logs a record may be timed before the one that it stands behind
		d.last = e.Record.At
	}
}

// Err is set when a record could not be folded.
func (d *Directory) Err() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if len(d.faults) > 0 {
		return d.faults[0]
	}
	return nil
}

func (d *Directory) fold(e storage.Entry) error {
	switch e.Record.Kind {
	case storage.KindControl:
		return d.foldControl(e.Record)
	case storage.KindOrder:
		return d.foldOrder(e)
	case storage.KindOutcome:
		return d.foldOutcome(e)
	case storage.KindRelease:
		return d.foldRelease(e)
	case storage.KindTakeover:
		return d.foldTakeover(e)
	default:
		return fmt.Errorf("unknown kind %q", e.Record.Kind)
	}
}

// foldControl applies genesis, reloads and rules.
func (d *Directory) foldControl(r storage.Record) error {
	var c Control
	if err := json.Unmarshal(r.Parts[storage.PartControl], &c); err != nil {
		return err
	}
	rules, err := d.rules.After(c.Rules)
	if err != nil {
		return err
	}
	d.rules = rules
	if c.Genesis != nil {
		if r.Position != 0 {
			return fmt.Errorf("genesis at position %d", r.Position)
		}
		if err := d.foldGenesis(*c.Genesis); err != nil {
			return err
		}
	}
	if c.Policy != "" {
		d.foldPolicy(c.Policy, c.Revision)
	}
	if c.Catalog != "" {
		d.catalog = c.Catalog
	}
	return nil
}

func (d *Directory) foldGenesis(token string) error {
	g, err := OpenGenesis(token)
	if err != nil {
		return err
	}
	set, keys, err := intents.OpenKeySet(g.KeySet, g.root)
	if err != nil {
		return err
	}
	d.origin, d.root = g.Origin, g.root
	d.keySet, d.keySetToken, d.keys = set, g.KeySet, keys
	d.policyDigest, d.catalog = g.Policy, g.Catalog
	for _, t := range g.Tenants {
		d.addTenant(t, g.Roles)
	}
	for _, u := range g.Users {
		d.tenants[u.Tenant].users[u.UserID] = u.User
	}
	for _, x := range g.Data {
		d.tenants[x.Tenant].data[x.Key] = x.Value
	}
	return nil
}

func (d *Directory) addTenant(id string, roles []catalog.RoleData) {
	t := &tenant{
		roles: make(map[string][]string), users: make(map[string]catalog.User),
		pins: make(map[string]intents.Pin), data: make(map[string]json.RawMessage), keys: make(map[string]catalog.APIKey),
	}
	for _, r := range roles {
		t.roles[r.Role] = r.Capabilities
	}
	d.tenants[id] = t
}

// decided is what the fold needs of an order record.
type decided struct {
	decision intents.Decision
	typ      string
	args     json.RawMessage
	ctx      intents.Context
	user     string
	tenant   string
	role     intents.Role
	kid      string
	roles    []string // of the actor, as decided
	skill    string   // whose pin the decision saw
	client   string   // act.client of the grant
	minted   minted   // the grant
	trace    string
	erased   bool      // the order is; what is here is its summary
	at       time.Time // of its record
	now      time.Time // that it was decided at: the record's, or before it
	position int64
	recorded int64 // where the order itself is: of a held one before position, which is its release's
}

// foldOrder applies an order record: allowed orders of the router have their
// effect here, at their own position; others become open or held orders.
//
// It runs in the journal's writer, and most orders are dispatched: of those, and
// of refusals, only what the fold keeps is read.
func (d *Directory) foldOrder(e storage.Entry) error {
	var o decided
	if err := o.readDecision(e.Record); err != nil || o.decision.Verdict == intents.Deny {
		return err
	}
	if err := o.readOrder(e.Record); err != nil {
		return err
	}
	if o.decision.Verdict == intents.Allow && o.decision.Executor != catalog.ExecutorRouter && o.typ != typeApprove {
		d.foldOpen(o)
		return nil
	}
	if err := o.readActor(e.Record); err != nil {
		return err
	}
	switch o.decision.Verdict {
	case intents.Hold:
		return d.foldHold(o)
	case intents.Allow, intents.Deny:
	}
	if o.typ == typeApprove {
		return d.foldApproval(o)
	}
	if move, ok := planMoves[o.typ]; ok {
		return move(d, o)
	}
	return d.foldAdmin(o)
}

// readDecided reads all of it.
func readDecided(r storage.Record) (o decided, err error) {
	for _, read := range []func(storage.Record) error{o.readDecision, o.readOrder, o.readActor} {
		if err := read(r); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *decided) readDecision(r storage.Record) (err error) {
	o.at, o.now, o.position, o.recorded = r.At, r.At, r.Position, r.Position
	o.decision, err = intents.ReadDecision(r.Parts[storage.PartDecision])
	return err
}

// readOrder reads what the order says.
func (o *decided) readOrder(r storage.Record) error {
	if _, erased := r.Erased[storage.PartOrder]; erased {
		return o.readSummary(r)
	}
	sealed, err := intents.ReadSealed(r.Parts[storage.PartOrder])
	if err != nil {
		return err
	}
	b, err := sealed.Body()
	if err != nil {
		return err
	}
	o.typ, o.args, o.user, o.tenant, o.trace = b.Intent.Type, b.Intent.Args, b.Actor.UserID, b.Actor.Tenant, b.TraceID
	if b.Context != nil {
		o.ctx = *b.Context
	}
	return nil
}

// readActor reads who sealed it and for whom.
func (o *decided) readActor(r storage.Record) error {
	var facts struct {
		Signer struct {
			KID  string       `json:"kid"`
			Role intents.Role `json:"role"`
		} `json:"signer"`
		Roles []string `json:"roles"`
		Now   string   `json:"now"`
		Skill struct {
			Name string `json:"name"`
		} `json:"skill"`
	}
	if err := json.Unmarshal(r.Parts[storage.PartFacts], &facts); err != nil {
		return err
	}
	if now, err := time.Parse(time.RFC3339Nano, facts.Now); err == nil {
		o.now = now // the times that others count by, such as an approval's
	}
	o.roles, o.role, o.kid, o.skill = facts.Roles, facts.Signer.Role, facts.Signer.KID, facts.Skill.Name
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
	o.client, o.minted = g.Act.Client, mintedBy(token, &g)
	return nil
}

// Origin is the log origin; empty before the genesis.
func (d *Directory) Origin() string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.origin
}

// JWKS publishes the key set in force.
func (d *Directory) JWKS() intents.JWKS {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return intents.JWKS{Origin: d.origin, Version: d.keySet.Version, Keys: slices.Clone(d.keySet.Keys), KeySet: d.keySetToken}
}

// KeySetVersion is the version of the key set in force.
func (d *Directory) KeySetVersion() int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.keySet.Version
}

// Rests are the positions of the records that keys, users, roles and API keys rest
// on, in order; the genesis is the first.
func (d *Directory) Rests() []int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.origin == "" {
		return nil
	}
	return append([]int64{0}, d.rests...)
}

// LastAt is the latest time of a record.
func (d *Directory) LastAt() time.Time {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.last
}

// APIKey finds an API key by the hash of its text.
func (d *Directory) APIKey(hash string) (key catalog.APIKey, tenant string, ok bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	row, ok := d.apiKeys[hash]
	if !ok || row.Revoked {
		return catalog.APIKey{}, "", false
	}
	return row.APIKey, row.Tenant, true
}

// onOutcome names who is told of outcomes. It must be called before orders are taken.
func (d *Directory) onOutcome(fn func(of int64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outcome = fn
}

// Tenants of the directory, sorted.
func (d *Directory) Tenants() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Sorted(maps.Keys(d.tenants))
}

// HasAPIKeys says whether any API key was ever put.
func (d *Directory) HasAPIKeys() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.apiKeys) > 0
}
