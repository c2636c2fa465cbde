package executors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/tracing"
)

// Config of a service. All members but Workers, Log, Beside and Ready are required.
type Config struct {
	Bus        bus.Conn     // may be nil where only Handle is used
	Name       string       // the executor, as catalog rows and tickets name it
	Version    string       // semver
	RouterKeys intents.Keys // keys that may sign tickets
	Origin     string       // log origin: the only issuer whose tickets are accepted
	Now        func() time.Time
	Workers    int          // intents of a type executed at once; 0: 64
	Log        *slog.Logger // nil: none
	// Beside are further endpoints, by subject.
	Beside map[string]bus.Handler
	// Each are those whose requests every process receives.
	Each map[string]bus.Handler

	// Ready, if not nil, is closed when the service listens.
	Ready chan<- struct{}
}

// Intents of a type at once: those that are executed, and those that wait for their turn, which
// alternates among tenants, their keys and the keys' users. Intents waiting on the bus would be
// served in order of arrival.
const (
	defaultWorkers = 64
	atOnce         = 2048
)

// Service executes the intents of one executor. Safe for concurrent use.
type Service struct {
	cfg      Config
	handlers map[string]Handler
	places   map[string]*ratelimit.Places // by type
	reports  keptReports
	running  sync.WaitGroup // handlers, also those that overran their deadline
}

// New makes a service of handlers by intent type. It starts nothing.
func New(cfg Config, handlers map[string]Handler) (*Service, error) {
	switch {
	case cfg.Name == "" || cfg.Version == "":
		return nil, fmt.Errorf("executor: it needs a name and a version")
	case cfg.RouterKeys == nil || cfg.Origin == "":
		return nil, fmt.Errorf("executor %s: it needs the router's keys and the log origin", cfg.Name)
	case cfg.Now == nil:
		return nil, fmt.Errorf("executor %s: it needs a clock", cfg.Name)
	case len(handlers) == 0:
		return nil, fmt.Errorf("executor %s: it has no handlers", cfg.Name)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Log = cfg.Log.With(slog.String("executor", cfg.Name))
	s := &Service{cfg: cfg, handlers: handlers, places: make(map[string]*ratelimit.Places, len(handlers))}
	for typ := range handlers {
		s.places[typ] = ratelimit.NewPlaces(cmp.Or(cfg.Workers, defaultWorkers))
	}
	return s, nil
}

// Serve answers dispatches until ctx ends and running handlers are done. It is
// the NATS micro service writ-<Name>: one endpoint per type, one queue group
// per executor, so that one of its instances gets each intent.
func Serve(ctx context.Context, cfg Config, handlers map[string]Handler) error {
	s, err := New(cfg, handlers)
	if err != nil {
		return err
	}
	if s.cfg.Bus == nil {
		return fmt.Errorf("executor %s: it needs a bus", s.cfg.Name)
	}
	endpoints := make(map[string]bus.Handler, len(s.handlers))
	maps.Copy(endpoints, s.cfg.Beside)
	each := map[string]bus.Handler{bus.Reports(s.cfg.Name): s.answerReports}
	maps.Copy(each, s.cfg.Each)
	for typ := range s.handlers {
		endpoints[bus.Exec(typ)] = func(ctx context.Context, data []byte) []byte { return s.Handle(ctx, typ, data) }
	}
	err = s.cfg.Bus.Serve(ctx, bus.Service{
		Name: bus.ServiceName(s.cfg.Name), Version: s.cfg.Version, Description: "carries out intents of executor " + s.cfg.Name,
		Queue: s.cfg.Name, Endpoints: endpoints, Workers: atOnce, Each: each,
	}, s.cfg.Ready)
	s.running.Wait()
	return err
}

// Handle answers a dispatch that came in for a type with a report; "" is any type. It returns at
// the ticket's deadline at the latest, even where the handler does not.
func (s *Service) Handle(ctx context.Context, typ string, dispatch []byte) []byte {
	o, left, err := s.admit(typ, dispatch)
	if err != nil {
		s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "dispatch refused", slog.String("reason", err.Error()))
		return encodeReport(refused(err))
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	leave, err := s.turn(ctx, o)
	if err != nil {
		return encodeReport(refused(err))
	}
	defer leave()
	a := attempt{o.ID, o.Ticket.Attempt}
	running, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	if earlier := s.reports.begin(a, o.progress, giveUp); earlier != nil { // the same dispatch again
		return earlier.wait(ctx)
	}
	raw := s.carryOut(running, o)
	s.reports.end(a, raw)
	return raw
}

// turn waits until the intent may begin: a place is free, before its ticket's begin_by.
func (s *Service) turn(ctx context.Context, o *Intent) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, o.Ticket.BeginEnds().Sub(s.cfg.Now()))
	defer cancel()
	leave, err = s.places[o.Type].WaitAs(waiting, o.Ticket.Actor.Tenant, o.Ticket.Key, o.Ticket.Actor.UserID)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, intents.Refuse(intents.ExecutorTimeout, "", "the intent had no turn before its deadline; nothing was started")
	case err != nil:
		return nil, errUnstarted
	case !s.cfg.Now().Before(o.Ticket.BeginEnds()): // the process was paused
		leave()
		return nil, errUnstarted
	}
	return leave, nil
}

// carryOut runs the handler and returns its report, at the deadline at the latest.
func (s *Service) carryOut(ctx context.Context, o *Intent) []byte {
	ctx, span := tracing.Start(logging.In(ctx, o.TraceID), "execute "+o.Type, tracing.Type.String(o.Type), tracing.Intent.String(o.ID), tracing.Attempt.Int(o.Ticket.Attempt))
	defer span.End()
	report := func(r intents.Report) []byte {
		if !errors.Is(ctx.Err(), context.Canceled) { // a stopping service is no evidence about a server
			r.Transport = o.transport.Load()
		}
		r.Lines = o.log.end()
		span.SetAttributes(tracing.Code.String(string(r.Code)))
		return encodeReport(r)
	}
	done := make(chan intents.Report, 1)
	s.running.Go(func() { done <- s.run(ctx, o) })
	select {
	case r := <-done:
		return report(r)
	case <-ctx.Done():
	}
	select { // both at once: the handler's report is preferred
	case r := <-done:
		return report(r)
	default:
		return report(cut(ctx, o))
	}
}

// publish sends lines of an intent to its followers.
func (s *Service) publish(w LogChunk) {
	raw, err := intents.MarshalPlain(w)
	if err == nil {
		err = s.cfg.Bus.Publish(bus.Log(s.cfg.Name), raw)
	}
	if err != nil {
		s.cfg.Log.Warn("lines are not shown before their intent ends", slog.String("error", err.Error()))
	}
}

// run calls the handler. A panic fails this intent and not the service. Its text may contain values
// of the intent and is discarded: the log has its type and where it was raised.
func (s *Service) run(ctx context.Context, o *Intent) (r intents.Report) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.LogAttrs(ctx, slog.LevelError, "handler panicked", o.attr(), slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
			r = failed(o.unknown(Fail(intents.ExecutorFailed, "the executor failed; its log says why")))
		}
	}()
	res, err := s.handlers[o.Type](ctx, o)
	failpoint.Hit(failpoint.ExecutorDone)
	if err != nil && errors.Is(context.Cause(ctx), errCancelled) {
		return cut(ctx, o)
	}
	if err != nil {
		return s.failure(ctx, o, err)
	}
	return succeeded(o, res)
}

// maxDispatch bounds a dispatch in bytes: an intent of 48 KiB, and a ticket whose
// inline inputs are bounded by the limit of tokens.
const maxDispatch = 1 << 20

// admit verifies a dispatch and returns its intent. Nothing in the dispatch is trusted before the
// ticket is verified; the ticket covers exactly the bytes whose intent_id it names. left is the
// time until the deadline.
func (s *Service) admit(typ string, dispatch []byte) (o *Intent, left time.Duration, err error) {
	if len(dispatch) > maxDispatch {
		return nil, 0, intents.Refuse(intents.PayloadTooLarge, "", "dispatch has more than 1 MiB")
	}
	d, err := intents.ReadDispatch(dispatch)
	if err != nil {
		return nil, 0, notDispatch()
	}
	t, err := intents.OpenTicket(d.Ticket, intents.KeysFunc(s.routerKey))
	if err != nil {
		return nil, 0, err
	}
	switch {
	case t.Issuer != s.cfg.Origin:
		return nil, 0, intents.Refuse(intents.SignatureInvalid, "", "ticket is from another log")
	case t.Executor != s.cfg.Name:
		return nil, 0, intents.Refuse(intents.SignatureInvalid, "", "ticket is for another executor")
	case !d.Names(t.IntentID):
		return nil, 0, intents.Refuse(intents.SignatureInvalid, "", "intent is not the one that the ticket names")
	}
	b, err := d.Body()
	if err != nil {
		return nil, 0, intents.Refuse(intents.SchemaInvalid, "", "intent does not match the schema of the envelope")
	}
	switch {
	case t.Type != b.Intent.Type || typ != "" && typ != t.Type:
		return nil, 0, intents.Refuse(intents.SignatureInvalid, "/intent/type", "ticket is for another type")
	case s.handlers[t.Type] == nil:
		return nil, 0, intents.Refuse(intents.UnknownIntent, "/intent/type", "this executor does not carry the type out")
	}
	if err := checkObligations(t.Obligations); err != nil {
		return nil, 0, err
	}
	now := s.cfg.Now()
	left = t.Deadline.Sub(now)
	if left <= 0 {
		return nil, 0, intents.Refuse(intents.ExecutorTimeout, "", "the deadline has passed; nothing was started")
	}
	if !now.Before(t.BeginEnds()) {
		return nil, 0, errUnstarted
	}
	o = newIntent(t, b)
	o.redactor = redactorOf(t.Obligations)
	o.log = &lineLog{header: LogChunk{Position: t.Position, Attempt: t.Attempt, Ticket: d.Ticket}, now: s.cfg.Now, kept: intents.Keepable(t.Obligations)}
	if s.cfg.Bus != nil {
		o.log.publish = s.publish
	}
	return o, left, nil
}

// errUnstarted reports that an intent was not begun in time.
var errUnstarted = errors.New("the ticket's begin_by has passed")

func notDispatch() error {
	return intents.Refuse(intents.SchemaInvalid, "", "dispatch is not {header, payload, ticket}")
}

func newIntent(t intents.Ticket, b intents.Body) *Intent {
	o := &Intent{ID: t.IntentID, Type: b.Intent.Type, Args: b.Intent.Args, Key: b.Constraints.IdempotencyKey, TraceID: b.TraceID, Ticket: t, transport: new(atomic.Pointer[intents.Transport]), progress: new(atomic.Pointer[bus.Progress])}
	if b.Context != nil {
		o.Context = *b.Context
	}
	if o.TraceID == "" { // as Envelope.TraceID
		o.TraceID = intents.TraceOf(t.IntentID)
	}
	return o
}

// Decode reads the arguments into v. The router has checked them against the
// type's schema; arguments that still do not fit are MALFORMED_ARGS.
func (o *Intent) Decode(v any) error {
	if err := intents.UnmarshalStrict(o.Args, v); err != nil {
		return Fail(intents.MalformedArgs, "the arguments are not those of "+o.Type)
	}
	return nil
}

// routerKey is a key that may sign tickets now. A key past its not_after may not,
// even where this executor has an old key set.
func (s *Service) routerKey(kid string) (intents.Key, error) {
	k, err := s.cfg.RouterKeys.Key(kid)
	if err == nil && !k.NotAfter.IsZero() && s.cfg.Now().After(k.NotAfter) {
		return intents.Key{}, intents.Refuse(intents.KeyRevoked, "", "the router's key is past its not_after")
	}
	return k, err
}
