// Package router is the policy enforcement point: one pipeline (pipeline.go) that decides signed
// intents, commits the decision durably, has the intent executed and makes the outcome durable
// before it answers.
//
//	decode → signature → schema → freshness → idempotency → RBAC → policy → commit → dispatch → outcome
//
// Decisions depend on a state that is built from the journal (package state). A decision remembers
// which parts of the state it read, and its commit asserts that they have not changed since.
package router

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/policies"
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Slots bound how many intents are executed at once; those beyond are answered OVERLOADED. Tasks'
// intents have slots of their own. No tenant and no key takes the last of them, so that another
// always finds one.
const (
	DefaultSlots      = 512
	DefaultChildSlots = 1024
)

// DefaultWaits is how many callers may wait for the outcome of an intent that another caller
// submitted, with the same shares. All others get IN_FLIGHT at once.
const DefaultWaits = 512

// Config of a router. Every member is required but Catalog, Documented, Breakers, BreakerStore, ShadowStore, Slots, ChildSlots,
// Waits, Rates, UserHolds, TenantHolds, TenantPlans and Plans.
type Config struct {
	Journal  storage.Journal
	Records  storage.Records
	State    *state.State // fed by the journal's observer
	Blobs    storage.Blobs
	Catalog  *catalog.Catalog // nil: the built-in rows
	Holdings *Holdings        // who holds which blobs; nil: no intent's blobs can be erased
	// Remembered reports whether a document of a tenant holds a blob; nil: none does.
	Remembered func(ctx context.Context, tenant, digest string) (bool, error)
	// Documented waits until the documents have every record before a position; nil: there are none.
	Documented func(ctx context.Context, position int64) error
	Bus        bus.Conn // CORE user "router"
	Key        intents.Signer
	// KeySecret makes the idempotency keys (storage.KeySecret). All routers of a log have the same
	// one for good: under another nothing that was accepted before would be recognized.
	KeySecret []byte
	Policy    *policies.Live
	// PolicyPlace is where the policy comes from. Empty: the embedded policy, or its replacement by
	// policy.push.
	PolicyPlace string
	// KeepPolicy stores a pushed policy by its digest before it decides; may be nil.
	KeepPolicy func(ctx context.Context, e *policies.Engine) error
	Now        func() time.Time
	Log        *slog.Logger
	// Blocked returns the condition that prevents intents from being accepted now; nil: nothing
	// ever does. It is asked about jumps of Now after each reading of it.
	Blocked func() (health.Condition, bool)

	// Rate is how many calls of a skill a tenant may make in a minute; 0, or nil: any number.
	Rate func(ctx context.Context, tenant, skill string) (rpm int, err error)

	// Meter receives measurements of intents; may be nil.
	Meter Meter

	Slots, ChildSlots, Waits int
	Rates                    Rates
	// Crashed: the last router of this log did not shut down in order.
	Crashed bool
	Term    Term // nil: no other router has this log

	Breakers     *breakers.Terms // nil: the default ones
	BreakerStore durable.Store   // nil: breakers end with the process
	ShadowStore  durable.Store   // nil: what is known of a shadow policy ends with the process

	UserHolds, TenantHolds int // how many approvals may be pending; 0: the defaults; negative: no bound
	TenantPlans, Plans     int // how many plans may be open, of a tenant and in all; 0: the defaults; negative: no bound
}

// Router decides intents and has them executed. It is safe for concurrent use.
type Router struct {
	cfg        Config
	state      *state.State
	slots      *ratelimit.Places
	childSlots *ratelimit.Places
	waits      *ratelimit.Places
	batches    *ratelimit.Places
	meters     meters
	refusals   *refusals
	engines    engines
	adopting   sync.Mutex // one pushed policy at a time is put in force
	versions   sync.Mutex // one record of the policy in force at a time
	erasing    sync.Mutex // one erasure at a time
	users      users
	grants     intents.Grants
	keys       *storage.IntentKeys
	waiters    waiters
	running    sync.WaitGroup // released intents that are being executed
	metrics    Metrics
	ended      endedAttempts
	breakers   *breakers.Set
	began      int64                // position at which this process began
	left       []storage.OpenIntent // that an earlier one left open; set by Start
	ready      atomic.Bool
	turn       sync.Mutex // of control intents, from decision to commit
	shadow     shadow
}

// New checks nothing durable and starts nothing; see Start.
func New(cfg Config) (*Router, error) {
	if cfg.Key.Role != intents.RoleRouter {
		return nil, fmt.Errorf("router: key has role %q", cfg.Key.Role)
	}
	if len(cfg.KeySecret) != sha256.Size {
		return nil, fmt.Errorf("router: the secret of idempotency keys has %d bytes, not %d", len(cfg.KeySecret), sha256.Size)
	}
	cfg.Slots, cfg.ChildSlots, cfg.Waits = cmp.Or(cfg.Slots, DefaultSlots), cmp.Or(cfg.ChildSlots, DefaultChildSlots), cmp.Or(cfg.Waits, DefaultWaits)
	cfg.UserHolds, cfg.TenantHolds = cmp.Or(cfg.UserHolds, DefaultUserHolds), cmp.Or(cfg.TenantHolds, DefaultTenantHolds)
	cfg.TenantPlans, cfg.Plans = cmp.Or(cfg.TenantPlans, DefaultTenantPlans), cmp.Or(cfg.Plans, DefaultPlans)
	cfg.Breakers = cmp.Or(cfg.Breakers, &breakers.Defaults)
	r := &Router{
		cfg: cfg, state: cfg.State, meters: newMeters(cfg.Rates, cfg.Now), refusals: newRefusals(cfg.Log, cfg.Now),
		slots: ratelimit.NewPlaces(cfg.Slots), childSlots: ratelimit.NewPlaces(cfg.ChildSlots), waits: ratelimit.NewPlaces(cfg.Waits),
		batches: ratelimit.PlacesOf(batchShares), keys: storage.NewIntentKeys(cfg.KeySecret), shadow: newShadow(),
	}
	r.state.OnOutcome(r.waiters.done)
	r.breakers = breakers.New(*cfg.Breakers, cfg.BreakerStore, cfg.Now, cfg.Log, r.breakerChanged)
	return r, nil
}

// Start makes the router ready: the state is complete, the policy and catalog in force are recorded,
// the breakers are read, and the self-proof has passed. It lists the intents that an earlier process
// left open, for Recover. An error means: not ready.
func (r *Router) Start(ctx context.Context) error {
	if err := r.state.Err(); err != nil {
		return err
	}
	if r.state.Origin() == "" {
		return errors.New("router: no genesis")
	}
	if err := r.checkKeySecret(ctx); err != nil {
		return err
	}
	if err := r.recordVersions(ctx); err != nil {
		return err
	}
	if err := r.SelfProof(ctx, r.cfg.Policy.Engine()); err != nil {
		return err
	}
	if err := r.breakers.Load(ctx); err != nil { // the servers that fail will show
		r.cfg.Log.WarnContext(ctx, "all skill servers are called again, since the breakers cannot be read", slog.String("error", err.Error()))
	}
	r.began = r.cfg.Records.Next()
	var err error
	if r.left, err = r.cfg.Journal.OpenIntents(ctx); err != nil {
		return err
	}
	if err := r.ExpireHolds(ctx); err != nil {
		return err
	}
	r.eraseInBackground(ctx) // what a crash left
	r.logUnexplained(ctx)
	r.openShadow(ctx)
	r.ready.Store(true)
	return nil
}

// Ready reports whether intents of everybody that are sent to this router are accepted: by itself, or by
// the one that decides if it could take over from that.
func (r *Router) Ready() bool {
	if reason, _ := r.Unexplained(); reason != "" {
		return false
	}
	if !r.decides() {
		_, blocked := r.blocked()
		return !blocked && r.state.Err() == nil
	}
	return r.unready() == nil
}

// unready is the refusal of all intents, with the reason and what to do about it; nil if intents
// are accepted.
func (r *Router) unready() error {
	x := intents.Refuse(intents.Overloaded, "", "the router is not ready")
	x.RetryAfter = unreadyRetry
	switch c, blocked := r.blocked(); {
	case blocked:
		x.Reason, x.Hint = "no intent is taken: "+c.Reason, c.Do
	case r.ready.Load() && r.state.Err() == nil:
		return nil
	}
	return x
}

// unreadyRetry is when to ask again: a start takes seconds, an operator longer.
const unreadyRetry = 10 * time.Second

func (r *Router) blocked() (health.Condition, bool) {
	if r.cfg.Blocked == nil {
		return health.Condition{}, false
	}
	return r.cfg.Blocked()
}

// recordVersions records the policy and catalog in force if they changed.
//
// Crash before it: the next start records them. Until then no intent is judged.
func (r *Router) recordVersions(ctx context.Context) error {
	r.versions.Lock() // decisions find the same change side by side
	defer r.versions.Unlock()
	engine, err := r.inForce(ctx)
	if err != nil {
		return err
	}
	_, revision := r.state.PolicyPushed()
	if is := engine.Revision(); is > 0 && is < revision {
		return fmt.Errorf("router: policy revision %d after %d: %w", is, revision, policies.ErrOlder)
	}
	var c state.Control
	if d := engine.Digest(); d != r.state.View().PolicyDigest() || engine.Revision() > revision {
		c.Policy, c.Revision = d, engine.Revision()
	}
	if d := r.cfg.Catalog.Digest(); d != r.state.CatalogDigest() {
		c.Catalog = d
	}
	if c == (state.Control{}) {
		return nil
	}
	return commitControl(ctx, r.cfg.Journal, c, r.cfg.Now(), state.SubjectPolicy)
}

// PolicyChanged records a policy that was put in force while running. The first decision by it would
// do so, too.
func (r *Router) PolicyChanged(ctx context.Context) error {
	if !r.decides() {
		return nil
	}
	return r.recordVersions(ctx)
}

// policyRecorded reports whether the record has the policy that decided in force, where the decision
// looked. If not, it records the policy and returns errStale: whoever reads the record finds no
// decision by a policy that is put in force behind it.
//
// Crash between the two: the record has a policy that has decided nothing.
func (r *Router) policyRecorded(ctx context.Context, d *decision) error {
	if d.policy.Digest() == d.view.PolicyDigest() {
		return nil
	}
	if err := r.recordVersions(ctx); err != nil {
		return err
	}
	return errStale
}

// Catalog is the catalog by which the router decides.
func (r *Router) Catalog() *catalog.Catalog { return r.cfg.Catalog }

// waiters are the callers that wait for the outcome of an intent.
type waiters struct {
	mu sync.Mutex // guards by
	by map[int64][]chan struct{}
}

func (w *waiters) wait(position int64) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[int64][]chan struct{})
	}
	ch := make(chan struct{})
	w.by[position] = append(w.by[position], ch)
	return ch
}

func (w *waiters) forget(position int64, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.by[position][:0]
	for _, c := range w.by[position] {
		if c != ch {
			kept = append(kept, c)
		}
	}
	if w.by[position] = kept; len(kept) == 0 {
		delete(w.by, position)
	}
}

func (w *waiters) done(position int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.by[position] {
		close(ch)
	}
	delete(w.by, position)
}
