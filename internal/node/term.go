package node

import (
	"context"
	"sync/atomic"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
)

// settleTime is how long after the beginning of a term tickets of the one before may be begun: they
// were issued under a lease that had expired by then, on clocks that differ by the leeway.
const settleTime = 5*time.Second + intents.Leeway

// term is the time in which this router of a cell decides. It implements router.Term.
type term struct {
	lease   *bus.Lease
	since   atomic.Pointer[time.Time] // when it began; nil: it has not
	decides atomic.Bool               // the router has started
}

// openTerm makes the term of this process, which has not begun.
func (n *Node) openTerm(ctx context.Context) (*term, error) {
	conn := n.conns.of(natsserver.Router)
	lease, err := bus.NewLease(ctx, conn, bus.LeaseRouter, conn.Instance())
	return &term{lease: lease}, err
}

// Held implements router.Term.
func (t *term) Held() bool { return t.decides.Load() && t.lease.Held() }

// Settled implements router.Term.
func (t *term) Settled() time.Time {
	since := t.since.Load()
	if since == nil {
		return time.Now().Add(settleTime)
	}
	return since.Add(settleTime)
}

// mayWrite is the reason why the journal must not write in this term.
func (t *term) mayWrite() error {
	if !t.lease.Held() {
		return bus.ErrLeaseLost
	}
	return nil
}

// decide waits until this router is the one that decides, follows the journal to its end and decides
// until ctx ends. Then it lets intents end that are being executed, and gives the lease back.
//
// Crash: the lease expires, and the next router continues.
func (n *Node) decide(ctx context.Context) error {
	return n.underLease(ctx, n.term.lease, "deciding router", func(g *group) error {
		if err := n.stream.Lead(ctx, n.term.mayWrite); err != nil {
			return err
		}
		now := time.Now()
		n.term.since.Store(&now)
		return n.startDeciding(g) //nolint:contextcheck // the group carries ctx
	}, func() error {
		n.term.decides.Store(false)
		return nil
	})
}
