package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
)

// Names of conditions.
const (
	conditionClock   = datadir.ConditionClock
	conditionLedger  = datadir.ConditionLedger
	conditionWitness = datadir.ConditionWitness
	conditionAltered = "altered" // what is stored is not what was written
	conditionDisk    = "disk"
	conditionKeyLog  = "key_log"      // it was changed
	conditionBehind  = "clock_behind" // it is before the last record
)

// lookEvery is how often a running node looks at its clock, its disk and what an
// operator has confirmed.
const lookEvery = 500 * time.Millisecond

// openHealth begins to watch. It comes first: a clock that is set during a start is
// noticed.
func (n *Node) openHealth() {
	n.health = health.New(n.tellConditions)
	if n.cfg.Elapsed != nil {
		n.guard = clock.NewGuard(n.cfg.Now, n.cfg.Elapsed)
	}
}

// tellConditions keeps what is up where `writ doctor` finds it.
func (n *Node) tellConditions(list []health.Condition) {
	if err := datadir.WriteConditions(n.cfg.Dir, list); err != nil {
		n.cfg.Log.Error("what is wrong cannot be written down", slog.String("error", err.Error()))
	}
}

// raise puts a condition up, and says so in the log the first time.
func (n *Node) raise(ctx context.Context, c health.Condition) {
	if n.health.Raise(c) {
		n.cfg.Log.ErrorContext(ctx, c.Reason, //nolint:sloglint // a condition has its own sentence
			slog.String("condition", c.Name), slog.Bool("takes_orders", !c.Blocks), slog.String("do", c.Do))
	}
}

func (n *Node) clear(ctx context.Context, name string) {
	if n.health.Clear(name) {
		n.cfg.Log.InfoContext(ctx, "no more", slog.String("condition", name))
	}
}

// blocked says what keeps orders from being taken. Whoever has read the clock and
// asks then is told of a jump before that reading.
func (n *Node) blocked() (health.Condition, bool) {
	if n.guard != nil {
		if by := n.guard.Jumped(); by != 0 {
			n.raise(context.Background(), n.jumped(by))
		}
	}
	return n.health.Blocked()
}

// jumped says it in whole seconds of the jump, so that it is one condition.
func (n *Node) jumped(by time.Duration) health.Condition {
	way := "forward"
	if by < 0 {
		way = "back"
	}
	return health.Condition{
		Name: conditionClock, Blocks: true,
		Reason: fmt.Sprintf("the clock was set %s by %s while writ ran", way, by.Abs().Round(time.Second)),
		Do:     "set the clock right; once it is, on this machine: writ confirm clock --data DIR",
	}
}

// admit is asked by the journal before orders are taken.
func (n *Node) admit() error {
	if c, blocked := n.blocked(); blocked {
		return errors.New(c.Reason)
	}
	return nil
}

// watchHealth looks until ctx ends.
func (n *Node) watchHealth(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		n.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look is one round.
func (n *Node) look(ctx context.Context) {
	n.blocked() //nolint:contextcheck // it logs, and has no caller to wait for
	n.lookBehind(ctx)
	n.lookDisk(ctx)
	n.takeConfirmed(ctx)
	if err := datadir.Arm(n.cfg.Dir, n.Origin(), n.cfg.Now()); err != nil {
		n.cfg.Log.WarnContext(ctx, "it is not written down that the log has begun", slog.String("error", err.Error()))
	}
}

// lookDisk: below the floor no new order is taken, and what was accepted ends.
func (n *Node) lookDisk(ctx context.Context) {
	room, err := n.journal.Room()
	c := health.Condition{Name: conditionDisk, Do: "make room on the disk of the data directory, or lower free_disk_mb: writ storage status --data DIR"}
	switch {
	case err != nil:
		c.Reason = "how much disk is free cannot be found out: " + err.Error()
	case room.Low():
		c.Reason = fmt.Sprintf("less than %d MiB of disk are free: no new order is taken", room.Floor>>20)
	case room.Stuck:
		c.Reason = "the journal's write-ahead log cannot be copied into it for want of room, and grows"
	default:
		n.clear(ctx, conditionDisk)
		return
	}
	n.raise(ctx, c)
}

// lookBehind: the clock is before what is recorded. Nothing is refused for it, since
// no record is timed before an earlier one, but new ones all get one time.
func (n *Node) lookBehind(ctx context.Context) {
	if !n.cfg.Now().Add(intents.Leeway).Before(n.directory.LastAt()) {
		n.clear(ctx, conditionBehind)
		return
	}
	n.raise(ctx, health.Condition{
		Name: conditionBehind, Reason: "the clock is before the last record, at " + n.directory.LastAt().UTC().Format(time.RFC3339),
		Do: "set the clock, if it is wrong; new records get the last one's time until it has passed",
	})
}

// takeConfirmed takes up what an operator has confirmed.
func (n *Node) takeConfirmed(ctx context.Context) {
	for _, name := range datadir.Confirmable {
		said, err := datadir.TakeConfirmed(n.cfg.Dir, name, n.cfg.Now())
		if said {
			n.confirmed(ctx, name)
		}
		if err != nil {
			n.cfg.Log.WarnContext(ctx, "not taken as confirmed", slog.String("condition", name), slog.String("error", err.Error()))
		}
	}
}

func (n *Node) confirmed(ctx context.Context, name string) {
	n.cfg.Log.WarnContext(ctx, "an operator has confirmed", slog.String("condition", name))
	if name == conditionClock && n.guard != nil {
		n.guard.Confirm()
	}
	if name == conditionWitness {
		n.overruled.Store(true)
	}
	n.clear(ctx, name)
	n.ledger.Wake()
}
