// Package routertest is a router with everything around it in process, for the
// tests of the router, its recorder and its HTTP entrance: a journal in memory
// that enforces the contract, the embedded policies, real signatures, and a bus
// whose executors verify the ticket that they are sent. Nothing here decides.
package routertest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/testing/journaltest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Began is when every world begins.
var Began = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// Journal is the part of a journal that a world needs.
type Journal interface {
	storage.Journal
	storage.Records
}

// Options of a world; the zero value is the usual one.
type Options struct {
	// Open opens the journal; nil: one in memory.
	Open func(observe storage.Observer) Journal
	// Wrap stands between router and journal, to let calls fail or wait.
	Wrap func(storage.Journal) storage.Journal
	// Catalog of the router; nil: the built-in rows.
	Catalog *catalog.Catalog
	// Blobs of the router; nil: none are there.
	Blobs storage.Blobs
	// Remembered reports whether a document names a blob; nil: none does.
	Remembered func(ctx context.Context, tenant, digest string) (bool, error)
	// Holdings of the router, retained over restarts; nil: no intent's blobs can be erased.
	Holdings router.HoldingStore
	// Also observes every record after the state does.
	Also storage.Observer
	// Blocked is the router's; nil: nothing prevents intents from being accepted.
	Blocked func() (health.Condition, bool)
	// Root signs the genesis and gives the log its origin; nil: a fresh key.
	Root *intents.Signer

	// Begin is data of tenants in the genesis.
	Begin []state.GenesisData

	// Crashed: each router is started as after a crash of the one before.
	Crashed bool

	// Term of the router; nil: it is alone.
	Term router.Term
	// Meter of the router; nil: none.
	Meter router.Meter

	Slots, ChildSlots, Waits int
	// Rates of the router; the zero value is no limit, since the clock stands.
	Rates router.Rates
	// How many intents of a user may wait for people; 0: the default.
	UserHolds int
	// Breakers of the router; nil: the default ones.
	Breakers *breakers.Terms
	// BreakerStore has them over restarts; nil: one in memory.
	BreakerStore durable.Store
	// ShadowStore has the report on a shadow policy over restarts; nil: none.
	ShadowStore durable.Store
	// How many plans of a tenant may be open; 0: the default.
	TenantPlans int
}

// World is one log with its keys and one router over it.
type World struct {
	testing.TB
	Clock   *Clock
	Journal Journal
	Dir     *state.State
	Router  *router.Router
	Bus     *Bus
	Policy  *policies.Live
	Origin  string
	Catalog *catalog.Catalog // of the router; another one counts after the next Reopen

	Root, Gateway, Manager, Planner, Workflow, Operator, Signer intents.Signer

	options Options
	token   string // genesis
	set     intents.KeySet
	setJWS  string
	task    atomic.Int64
}

// engine of the embedded policies, compiled once for all tests. The result does not depend on the
// load of the machine.
var engine = sync.OnceValues(func() (*policies.Engine, error) {
	e, err := policies.New(policies.Embedded())
	if err != nil {
		return nil, err
	}
	return e.WithoutDeadline(), nil
})

// New is a world whose router is ready: position 0 has its genesis.
func New(t testing.TB, o Options) *World {
	t.Helper()
	w := NewEmpty(t, o)
	w.Begin()
	w.Start()
	return w
}

// Begin commits the genesis.
func (w *World) Begin() {
	w.Helper()
	w.Must(router.Begin(w.Context(), w.Journal, w.token, w.Clock.Now()))
}

// NewEmpty is a world before its genesis.
func NewEmpty(t testing.TB, o Options) *World {
	t.Helper()
	e, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	if o.BreakerStore == nil {
		o.BreakerStore = new(Document)
	}
	w := &World{TB: t, Clock: NewClock(Began), Policy: policies.NewLive(e), Catalog: o.Catalog, options: o}
	w.Root, w.Gateway, w.Manager = w.NewKey(intents.RoleRoot), w.NewKey(intents.RoleGateway), w.NewKey(intents.RoleManager)
	w.Planner, w.Workflow = w.NewKey(intents.RolePlanner), w.NewKey(intents.RoleWorkflow)
	w.Operator, w.Signer = w.NewKey(intents.RoleOperator), w.NewKey(intents.RoleRouter)
	if o.Root != nil {
		w.Root = *o.Root
	}
	local := w.Operator.VerificationKey()
	local.Subject, local.Tenant = "local", "system"
	w.set = intents.KeySet{Version: 1, Keys: []intents.JWK{local.ToJWK()}}
	for _, s := range []intents.Signer{w.Gateway, w.Manager, w.Planner, w.Workflow, w.Signer} {
		w.set.Keys = append(w.set.Keys, s.VerificationKey().ToJWK())
	}
	if w.setJWS, err = intents.SignKeySet(w.Root, w.set); err != nil {
		t.Fatal(err)
	}
	if w.token, err = state.NewGenesis(w.Root, w.set, e.Digest(), o.Catalog, o.Begin...); err != nil {
		t.Fatal(err)
	}
	w.Origin = state.Origin(w.Root.Public())
	w.Bus = newBus(w)
	t.Cleanup(w.sameState)
	w.open(func(observe storage.Observer) Journal {
		if o.Open != nil {
			return o.Open(observe)
		}
		return journaltest.NewJournal(observe)
	})
	return w
}

// KeySecret makes the idempotency keys of every world.
var KeySecret = bytes.Repeat([]byte{7}, 32)

// open makes directory, journal and router; the router is not started.
func (w *World) open(journal func(storage.Observer) Journal) {
	w.Helper()
	dir := state.New()
	w.Dir = dir
	var holdings *router.Holdings
	w.Journal = journal(func(e storage.Entry) {
		w.asRecorded(e)
		dir.Observe(e)
		if holdings != nil {
			holdings.Wake()
		}
		if w.options.Also != nil {
			w.options.Also(e)
		}
	})
	holdings = w.follow()
	var wrapped storage.Journal = w.Journal
	if w.options.Wrap != nil {
		wrapped = w.options.Wrap(wrapped)
	}
	blobs := w.options.Blobs
	if blobs == nil {
		blobs = NoBlobs{}
	}
	config := router.Config{
		Journal: wrapped, Records: w.Journal, State: dir, Blobs: blobs, Holdings: holdings, Remembered: w.options.Remembered, Bus: w.Bus, Key: w.Signer, KeySecret: KeySecret,
		Catalog: w.Catalog, Policy: w.Policy, Now: w.Clock.Now, Log: slog.New(slog.DiscardHandler), Slots: w.options.Slots, ChildSlots: w.options.ChildSlots,
		Waits: w.options.Waits, Rates: w.rates(), UserHolds: w.options.UserHolds, TenantPlans: w.options.TenantPlans, Crashed: w.options.Crashed, Term: w.options.Term, Meter: w.options.Meter, Blocked: w.options.Blocked, Breakers: w.options.Breakers, BreakerStore: w.options.BreakerStore, ShadowStore: w.options.ShadowStore,
	}
	var err error
	w.Router, err = router.New(config)
	w.Must(err)
}

// follow runs the index of blob holders, if there is one, until the test ends.
func (w *World) follow() *router.Holdings {
	if w.options.Holdings == nil {
		return nil
	}
	h := router.NewHoldings(w.Journal, w.options.Holdings, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Run(ctx) // it has no error but the end
	}()
	w.Cleanup(func() { cancel(); <-ended })
	return h
}

func (w *World) rates() router.Rates {
	r := w.options.Rates
	if r.Signer == 0 {
		r.Signer = -1
	}
	if r.Tenant == 0 {
		r.Tenant = -1
	}
	return r
}

// Reopen is the world of the next process: the same records, keys, clock and
// executors, and a router that has not been started. The journal must be the
// one in memory.
func (w *World) Reopen() *World {
	w.Helper()
	memory, ok := w.Journal.(*journaltest.Journal)
	if !ok {
		w.Fatal("only the journal in memory is reopened")
	}
	return w.ReopenOn(func(observe storage.Observer) Journal { return memory.Reopen(observe) })
}

// ReopenOn is Reopen with a journal that the test opens.
func (w *World) ReopenOn(journal func(storage.Observer) Journal) *World {
	w.Helper()
	next := &World{
		TB: w.TB, Clock: w.Clock, Policy: w.Policy, Catalog: w.Catalog, Origin: w.Origin, Bus: w.Bus, options: w.options, token: w.token,
		set: w.set, setJWS: w.setJWS, Root: w.Root, Gateway: w.Gateway, Manager: w.Manager, Planner: w.Planner, Workflow: w.Workflow,
		Operator: w.Operator, Signer: w.Signer,
	}
	next.options.Wrap = nil
	next.task.Store(w.task.Load())
	next.open(journal)
	w.Bus.world.Store(next)
	return next
}

// Start starts the router and waits until the intents that an earlier one left open have ended.
func (w *World) Start() {
	w.Helper()
	w.Must(w.Router.Start(w.Context()))
	w.Must(w.Router.Recover(w.Context()))
}

// InTerm gives a term to the routers of later worlds (Reopen).
func (w *World) InTerm(t router.Term) { w.options.Term = t }

// Restart reopens and starts the router.
func (w *World) Restart() *World {
	w.Helper()
	next := w.Reopen()
	next.Start()
	return next
}

// RunRouter runs the router beside the test; stop ends it and waits.
func (w *World) RunRouter() (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Router.Run(ctx) }()
	return func() {
		w.Helper()
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	}
}

// NewKey makes a key.
func (w *World) NewKey(role intents.Role) intents.Signer {
	w.Helper()
	s, err := intents.GenerateSigner(role)
	w.Must(err)
	return s
}

// Must stops the test on an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// asRecorded fails the test unless what travels with an entry is what the parts of its record say.
func (w *World) asRecorded(e storage.Entry) {
	for name, made := range map[string]any{storage.PartDecision: e.Decision, storage.PartSummary: e.Summary} {
		if reflect.ValueOf(made).IsNil() {
			continue
		}
		if raw, err := json.Marshal(made); err != nil || !bytes.Equal(raw, e.Record.Parts[name]) {
			w.Errorf("the %s of record %d is %s, and its part %s", name, e.Record.Position, raw, e.Record.Parts[name])
		}
	}
}

// sameState checks that the state after every test is the same after encoding and decoding it, and
// after rebuilding it from the records.
func (w *World) sameState() {
	if w.Dir.Err() != nil || w.Failed() {
		return
	}
	var written, again bytes.Buffer
	_, err := w.Dir.Snapshot(&written)
	w.Must(err)
	read, err := state.Open(bytes.NewReader(written.Bytes()))
	w.Must(err)
	if _, err := read.Snapshot(&again); err != nil || !bytes.Equal(written.Bytes(), again.Bytes()) {
		w.Errorf("the state is another one once it was written down and read: %v\n%s\n%s", err, &written, &again)
	}
	if got, want := read.Erasing(), w.Dir.Erasing(); !slices.EqualFunc(got, want, func(a, b state.Erasure) bool { return reflect.DeepEqual(a, b) }) {
		w.Errorf("of the erasures %v the state that was read knows %v", want, got)
	}
	next, want, err := w.Dir.Digest() // a record may have come since
	w.Must(err)
	fresh := state.New()
	for r, err := range w.Journal.Scan(context.Background(), 0) {
		if err != nil {
			return // the test has closed it
		}
		if r.Position < next {
			fresh.Observe(state.EntryOf(r))
		}
	}
	if fresh.Next() != next {
		return
	}
	if _, got, err := fresh.Digest(); err != nil || got != want {
		w.Errorf("the state is another one once it was folded anew: %v", err)
	}
}

// Records are all records.
func (w *World) Records() []storage.Record {
	w.Helper()
	var out []storage.Record
	for r, err := range w.Journal.Scan(w.Context(), 0) {
		w.Must(err)
		out = append(out, r)
	}
	return out
}

// Clock stands still until it is moved.
type Clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

// NewClock shows a time.
func NewClock(at time.Time) *Clock { return &Clock{now: at} }

// Now is the time that it shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Move moves it, back if d is negative.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
