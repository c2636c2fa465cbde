package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/telemetry"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// Names of conditions.
const (
	conditionClock    = datadir.ConditionClock
	conditionLedger   = datadir.ConditionLedger
	conditionWitness  = datadir.ConditionWitness
	conditionAltered  = "altered" // stored data differs from the written data
	conditionDisk     = "disk"
	conditionLong     = "write_ahead_log" // of a database; it grows
	conditionBeside   = "journal"         // data beside the parts of records was changed
	conditionKeys     = "keys"            // keys of erasable parts are missing
	conditionErasures = "erasures"        // keys were destroyed, and no record.erase says so
	conditionBehind   = "clock_behind"    // it is before the last record
	conditionAside    = datadir.ConditionAside
)

// startHealth watches the process, and serves its figures.
func (n *Node) startHealth(g *group) error {
	g.run("health", n.watchHealth)
	g.run("memory", freeAtRest)
	if n.published != nil {
		g.run("public keys", func(ctx context.Context) error { return n.published.Follow(ctx, n.cfg.Log) })
	}
	if n.metered != nil {
		g.http("metrics", edge.Default.Server(telemetry.Handler(n.Figures())), edge.Default.Listener(n.metered))
	}
	return nil
}

// lookEvery is how often a running node checks its clock, its disk and an operator's confirmations.
const lookEvery = 500 * time.Millisecond

// openHealth begins to watch. It runs first, so that a clock that is set during a start is
// noticed.
func (n *Node) openHealth() {
	n.health = health.New(n.tellConditions)
	if n.cfg.Elapsed != nil {
		n.guard = clock.NewGuard(n.cfg.Now, n.cfg.Elapsed)
	}
}

// tellConditions stores the present conditions where `writ doctor` finds them.
func (n *Node) tellConditions(list []health.Condition) {
	if err := datadir.WriteConditions(n.cfg.Dir, list); err != nil {
		n.cfg.Log.Error("the conditions cannot be written for writ doctor", slog.String("error", err.Error()))
	}
}

// raise sets a condition, and logs it the first time.
func (n *Node) raise(ctx context.Context, c health.Condition) {
	if n.health.Raise(c) {
		n.cfg.Log.ErrorContext(ctx, c.Reason, //nolint:sloglint // a condition has its own sentence
			slog.String("condition", c.Name), slog.Bool("takes_intents", !c.Blocks), slog.String("do", c.Do))
	}
}

func (n *Node) clear(ctx context.Context, name string) {
	if n.health.Clear(name) {
		n.cfg.Log.InfoContext(ctx, "condition has ended", slog.String("condition", name))
	}
}

// blocked returns the condition that stops the node from accepting any intent: the router itself
// lets those pass that conditionErasures waits for. A caller that has read the clock before the call
// learns of every jump before that reading.
func (n *Node) blocked() (health.Condition, bool) {
	if n.guard != nil {
		if by := n.guard.Jump(); by != 0 {
			n.raise(context.Background(), n.jumped(by))
		}
	}
	return n.health.Blocker(conditionErasures)
}

// jumped is the condition of a jump, in whole seconds, so that it stays one condition.
func (n *Node) jumped(by time.Duration) health.Condition {
	way := "forward"
	if by < 0 {
		way = "back"
	}
	return health.Condition{
		Name: conditionClock, Blocks: true,
		Reason: fmt.Sprintf("the clock was set %s by %s while writ ran", way, by.Abs().Round(time.Second)),
		Do:     "set the clock right, then run on this machine: writ admin confirm clock --data DIR",
	}
}

// admit is called by the journal before it accepts intents.
func (n *Node) admit() error {
	if c, blocked := n.blocked(); blocked {
		return errors.New(c.Reason)
	}
	return nil
}

// watchHealth checks until ctx ends.
func (n *Node) watchHealth(ctx context.Context) error {
	return clock.Loop(ctx, lookEvery, func() { n.look(ctx) })
}

// look is one round of watchHealth.
func (n *Node) look(ctx context.Context) {
	n.blocked() //nolint:contextcheck // it logs, and has no caller to wait for
	if n.directory != nil {
		n.lookBehind(ctx)
	}
	if n.room != nil {
		n.lookDisk(ctx)
	}
	if n.recorder != nil {
		n.lookAside(ctx)
	}
	if n.router != nil {
		n.lookErasures(ctx)
	}
	n.lookLogs(ctx)
	n.takeConfirmed(ctx)
	if err := datadir.Arm(n.cfg.Dir, n.Origin(), n.cfg.Now()); err != nil {
		n.cfg.Log.WarnContext(ctx, "the file that marks the start of the log cannot be written", slog.String("error", err.Error()))
	}
}

// lookDisk checks the free disk. Below the minimum no new intent is accepted, and accepted
// intents are completed.
func (n *Node) lookDisk(ctx context.Context) {
	room, err := n.room()
	c := health.Condition{Name: conditionDisk, Do: "make room on the disk of the data directory, or lower free_disk_mb: writ admin storage status --data DIR"}
	switch {
	case err != nil:
		c.Reason = "the free disk space cannot be read: " + err.Error()
	case room.Low():
		c.Reason = fmt.Sprintf("less than %d MiB of disk are free: no new intent is accepted", room.Floor>>20)
	case room.Stuck:
		c.Reason = "the journal's write-ahead log grows: the disk has no room to copy it into the journal"
	default:
		n.clear(ctx, conditionDisk)
		return
	}
	n.raise(ctx, c)
}

// namedAside is how many positions a condition names.
const namedAside = 5

// lookAside checks whether the recorder has set records aside. Intents go on.
func (n *Node) lookAside(ctx context.Context) {
	list := n.recorder.SetAside()
	if len(list) == 0 {
		n.clear(ctx, conditionAside)
		return
	}
	named := fmt.Sprint(list[:min(len(list), namedAside)])
	if len(list) > namedAside {
		named = strings.TrimSuffix(named, "]") + " …]"
	}
	n.raise(ctx, health.Condition{
		Name: conditionAside, Reason: fmt.Sprintf("%d records could not be projected, at the positions %s: documents lack what follows from them, and the journal has it", len(list), named),
		Do: "see which: writ audit fsck --data DIR; with a writ that can project them, make each index again: writ admin storage reindex INDEX --data DIR",
	})
}

// logs are the write-ahead logs of the databases that the process keeps itself, in bytes.
func (n *Node) logs() map[string]float64 {
	out := map[string]float64{}
	for name, store := range map[string]any{"journal": n.journal, "documents": n.documents} {
		if s, ok := store.(interface{ LogBytes() int64 }); ok {
			out[name] = float64(s.LogBytes())
		}
	}
	return out
}

// lookLogs checks whether a write-ahead log grows because somebody reads without an end.
func (n *Node) lookLogs(ctx context.Context) {
	for name, bytes := range n.logs() {
		if bytes > storage.LongLog {
			n.raise(ctx, health.Condition{
				Name: conditionLong, Reason: fmt.Sprintf("the write-ahead log of the %s has more than %d MiB and cannot be reset", name, storage.LongLog>>20),
				Do: "end what reads the database for long, such as a tool of yours that has the file open: writ admin storage status --data DIR",
			})
			return
		}
	}
	n.clear(ctx, conditionLong)
}

// lookBehind checks whether the clock is before the last record. Nothing is refused then:
// no record gets an earlier time than the one before it, so new records share one time.
func (n *Node) lookBehind(ctx context.Context) {
	if !n.cfg.Now().Add(intents.Leeway).Before(n.directory.LastAt()) {
		n.clear(ctx, conditionBehind)
		return
	}
	n.raise(ctx, health.Condition{
		Name: conditionBehind, Reason: "the clock is before the last record, which has the time " + n.directory.LastAt().UTC().Format(time.RFC3339),
		Do: "set the clock, if it is wrong; new records get the last record's time until the clock has passed it",
	})
}

// takeConfirmed applies an operator's confirmations.
func (n *Node) takeConfirmed(ctx context.Context) {
	for _, name := range datadir.Confirmable {
		if err := datadir.TakeConfirmed(n.cfg.Dir, name, n.cfg.Now(), func() { n.confirmed(ctx, name) }); err != nil {
			n.cfg.Log.WarnContext(ctx, "a confirmation was not accepted", slog.String("condition", name), slog.String("error", err.Error()))
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
	n.followers.Wake()
}

// keysLost reports that erasable parts cannot be read, although nobody erased them. They read as
// erased; everything else works.
func (n *Node) keysLost(err error) {
	n.cfg.Log.Error("keys of erasable parts are lost", slog.String("error", err.Error()))
	n.health.Raise(health.Condition{
		Name: conditionKeys, Reason: "keys of erasable parts are missing or changed: those parts of the journal cannot be read",
		Do: "stop writ, put the newest files of " + sqlite.KeysName + "/ back, and check: writ audit fsck --data DIR",
	})
}

// lookErasures checks whether the router waits for erasures to be signed again.
func (n *Node) lookErasures(ctx context.Context) {
	reason, do := n.router.Unexplained()
	if reason == "" {
		n.clear(ctx, conditionErasures)
		return
	}
	n.raise(ctx, health.Condition{Name: conditionErasures, Blocks: true, Reason: reason, Do: do})
}
