package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/durable"
)

// Confirmable are the conditions that end when an operator says so.
var Confirmable = []string{conditionClock, conditionLedger, conditionWitness}

func confirmFile(data, name string) string { return filepath.Join(data, "confirm", name) }

// ErrNobodyRuns says that no process uses a data directory.
var ErrNobodyRuns = errors.New("no writ runs on this data directory")

// Confirm tells the process of a data directory that an operator has looked at a
// condition, and waits until it is taken up. Whoever may write to the directory
// may: the keys are there too.
func Confirm(ctx context.Context, data, name string, now func() time.Time) error {
	if !slices.Contains(Confirmable, name) {
		return fmt.Errorf("%q cannot be confirmed: only %s", name, strings.Join(Confirmable, ", "))
	}
	if free, err := lockDir(data); err == nil {
		return errors.Join(fmt.Errorf("%w: %s", ErrNobodyRuns, data), free.Close())
	}
	path := confirmFile(data, name)
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	if err := durable.Write(path, []byte(now().UTC().Format(time.RFC3339Nano)+"\n")); err != nil {
		return err
	}
	look := time.NewTicker(lookEvery / 10)
	defer look.Stop()
	for {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return errors.Join(errors.New("nobody has taken it up"), os.Remove(path))
		}
	}
}

// takeConfirmed takes up what an operator has confirmed. What was said under a
// clock that shows something else by now says nothing.
func (n *Node) takeConfirmed(ctx context.Context) {
	for _, name := range Confirmable {
		path := confirmFile(n.cfg.Dir, name)
		raw, err := os.ReadFile(path) //nolint:gosec // G304: the data directory
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		at, parsed := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(raw)))
		if err = errors.Join(err, parsed); err == nil && n.cfg.Now().Sub(at).Abs() > clock.Limit {
			err = errors.New("it was said when the clock showed another time")
		}
		if err == nil {
			n.confirmed(ctx, name)
		} else {
			n.cfg.Log.WarnContext(ctx, "not taken as confirmed", slog.String("condition", name), slog.String("error", err.Error()))
		}
		if err := durable.Remove(path); err != nil {
			n.cfg.Log.ErrorContext(ctx, "a confirmation stays", slog.String("condition", name), slog.String("error", err.Error()))
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
