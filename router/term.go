package router

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// Term is the time in which one router of a cell decides. Implementations are safe for concurrent use.
type Term interface {
	// Held reports whether this router decides now, and nobody else can. It is asked before each
	// decision, answer and ticket.
	Held() bool
	// Settled is when no ticket of an earlier term can be begun any more.
	Settled() time.Time
}

// decides reports whether this router decides now. Another one of the cell decides if not, or will.
func (r *Router) decides() bool { return r.cfg.Term == nil || r.cfg.Term.Held() }

// settled reports whether no ticket of an earlier term can be begun any more.
func (r *Router) settled() bool { return r.cfg.Term == nil || !time.Now().Before(r.cfg.Term.Settled()) }

// forward sends a submission to the router that decides, and decodes its answer. Without an answer the
// error says whether it may have been accepted; the same bytes may be sent again in any case.
func forward[Answer any](ctx context.Context, r *Router, subject string, raw []byte) (answer Answer, err error) {
	out, err := bus.Submit(ctx, r.cfg.Bus, subject, raw, time.After)
	switch {
	case errors.Is(err, bus.ErrNoResponders):
		x := intents.Refuse(intents.DispatchUnavailable, "", "no router decides now")
		x.RetryAfter = unreadyRetry
		return answer, x
	case err != nil:
		return answer, unknownAcceptance()
	}
	return answer, json.Unmarshal(out, &answer)
}

// deciding limits a handler to the term of its router: a router that was paused or cut off gives no
// answer once another one may decide. The requester asks again.
func (r *Router) deciding(h bus.Handler) bus.Handler {
	return func(ctx context.Context, data []byte) []byte {
		if !r.decides() {
			return nil
		}
		return h(ctx, data)
	}
}
