package executors

import (
	"errors"
	"sync/atomic"
	"time"

	"aob.dev/writ/intents"
)

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
	var d intents.Dispatch
	if err := intents.UnmarshalStrict(dispatch, &d); err != nil {
		return nil, 0, notDispatch()
	}
	t, err := intents.OpenTicket(d.Ticket, intents.KeysFunc(s.routerKey))
	if err != nil {
		return nil, 0, err
	}
	payload, ok := named(d, t.IntentID)
	switch {
	case t.Issuer != s.cfg.Origin:
		return nil, 0, intents.Refuse(intents.SignatureInvalid, "", "ticket is from another log")
	case t.Executor != s.cfg.Name:
		return nil, 0, intents.Refuse(intents.SignatureInvalid, "", "ticket is for another executor")
	case !ok:
		return nil, 0, intents.Refuse(intents.SignatureInvalid, "", "intent is not the one that the ticket names")
	}
	b, err := intents.ReadBody(payload)
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

// named finds the bytes that the intent_id names. A sender's JSON encoder may have escaped a
// character of the payload differently; the canonical form was signed, so it is tried as well. The
// digest decides.
func named(d intents.Dispatch, id string) (payload []byte, ok bool) {
	if intents.IntentID(d.Header, d.Payload) == id {
		return d.Payload, true
	}
	canonical, err := intents.Canonical(d.Payload)
	return canonical, err == nil && intents.IntentID(d.Header, canonical) == id
}

func newIntent(t intents.Ticket, b intents.Body) *Intent {
	o := &Intent{ID: t.IntentID, Type: b.Intent.Type, Args: b.Intent.Args, Key: b.Constraints.IdempotencyKey, TraceID: b.TraceID, Ticket: t, transport: new(atomic.Pointer[intents.Transport])}
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
