package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// startElection has this process record once it is the one that does.
func (n *Node) startElection(g *group) error {
	conn, err := n.connect(g.ctx, natsserver.Recorder)
	if err != nil {
		return err
	}
	g.run("recorder", func(ctx context.Context) error { return n.elected(ctx, conn) })
	return nil
}

// elected records under the lease of the recorders.
func (n *Node) elected(ctx context.Context, conn bus.Conn) error {
	lease, err := n.lease(ctx, conn)
	if err != nil {
		return err
	}
	return n.underLease(ctx, lease, "recorder", func(g *group) error { return n.openRecording(ctx, g, conn) }, func() error {
		n.recording.Store(false)
		return closed(n.ledger) // as long as the journal is open
	})
}

// underLease waits for a lease and works under it: begin starts services in a group, and end is called
// when they have stopped. Losing the lease is an error, which ends the process: the next start waits
// for it again.
func (n *Node) underLease(ctx context.Context, l *bus.Lease, role string, begin func(*group) error, end func() error) (err error) {
	log := n.cfg.Log.With(slog.String("role", role))
	log.InfoContext(ctx, "waits for the lease of its role")
	if l.Take(ctx) != nil {
		return nil // ctx has ended
	}
	log.InfoContext(ctx, "has the lease of its role")
	keeping, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	lost := make(chan error, 1)
	go func() { lost <- l.Keep(keeping) }()

	g := newGroup(ctx)
	err = begin(g)
	if ctx.Err() != nil {
		err = nil // it was stopped meanwhile
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-g.failed:
		case err = <-lost:
			lost <- nil
		}
	}
	err = errors.Join(err, g.stop(), end())
	release()
	<-lost //nolint:errcheck // the lease is given back after the last write
	return err
}

// lease of the recorders. The cell has it once a router has started.
func (n *Node) lease(ctx context.Context, conn bus.Conn) (l *bus.Lease, err error) {
	err = clock.Every(ctx, time.Second, func() bool {
		if l, err = bus.NewLease(ctx, conn, bus.LeaseRecorder, conn.Instance()); err != nil && ctx.Err() == nil {
			n.cfg.Log.WarnContext(ctx, "the recorder waits for a router of the cell", slog.String("error", err.Error()))
		}
		return err == nil
	})
	return l, err
}

// openRecording opens the stores that only the recorder of the cell uses.
func (n *Node) openRecording(ctx context.Context, g *group, conn bus.Conn) error {
	if err := ledger.CheckAhead(datadir.Ledger(n.cfg.Dir), n.journal.Next()); err != nil {
		return err
	}
	if err := n.openLedger(ctx); err != nil {
		return err
	}
	if contents, err := n.stored.Contents(); err == nil { // else it reads all records
		n.recorder.From = contents.State
	}
	n.askWitnesses(ctx)
	g.run("reached", func(ctx context.Context) error { return n.tellReached(ctx, conn) }) //nolint:contextcheck // the group carries ctx
	return n.startRecording(g)                                                            //nolint:contextcheck // likewise
}

// tellEvery is how often the recorder publishes its position.
const tellEvery = 50 * time.Millisecond

// tellReached publishes the position of the documents to the routers.
func (n *Node) tellReached(ctx context.Context, conn bus.Conn) error {
	told := int64(-1)
	return clock.Loop(ctx, tellEvery, func() {
		at := n.recorder.Reached()
		if at == told {
			return
		}
		if err := bus.TellReached(ctx, conn, at); err == nil {
			told = at
		} else if ctx.Err() == nil {
			n.cfg.Log.WarnContext(ctx, "routers do not learn the recorder's position", slog.String("error", err.Error()))
		}
	})
}

// openIndex makes a cell router's view of the recorder.
func (n *Node) openIndex(context.Context) error {
	n.index = storage.NewProgress()
	return nil
}

// startIndex hears how far the documents have come.
func (n *Node) startIndex(g *group) error {
	heard := n.index.(*storage.Progress) //nolint:forcetypeassert // openIndex made it
	g.run("recorder's progress", func(ctx context.Context) error {
		return clock.Loop(ctx, time.Second, func() {
			if err := bus.HearReached(ctx, n.conns.of(natsserver.Router), heard.Move); err != nil && ctx.Err() == nil {
				n.cfg.Log.WarnContext(ctx, "the recorder is not heard", slog.String("error", err.Error()))
			}
		})
	})
	return nil
}

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
