package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/health"
)

// Names of the conditions that end when an operator says so.
const (
	ConditionClock   = "clock"   // it has jumped
	ConditionLedger  = "ledger"  // leaves are missing
	ConditionWitness = "witness" // it has seen another log
)

// Confirmable are these conditions.
var Confirmable = []string{ConditionClock, ConditionLedger, ConditionWitness}

func confirmFile(data, name string) string { return filepath.Join(data, "confirm", name) }

// ErrNobodyRuns says that no process uses a data directory.
var ErrNobodyRuns = errors.New("no writ runs on this data directory")

// confirmLook is how often Confirm looks whether it was taken up.
const confirmLook = 50 * time.Millisecond

// Confirm tells the process of a data directory that an operator has looked at a
// condition, and waits until it is taken up. Whoever may write to the directory
// may: the keys are there too.
func Confirm(ctx context.Context, data, name string, now func() time.Time) error {
	if !slices.Contains(Confirmable, name) {
		return fmt.Errorf("%q cannot be confirmed: only %s", name, strings.Join(Confirmable, ", "))
	}
	if free, err := Lock(data); err == nil {
		return errors.Join(fmt.Errorf("%w: %s", ErrNobodyRuns, data), free.Close())
	}
	path := confirmFile(data, name)
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	if err := durable.Write(path, []byte(now().UTC().Format(time.RFC3339Nano)+"\n")); err != nil {
		return err
	}
	look := time.NewTicker(confirmLook)
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

// TakeConfirmed takes up what an operator has confirmed, once. What was said under
// a clock that shows something else by now says nothing.
func TakeConfirmed(data, name string, now time.Time) (bool, error) {
	path := confirmFile(data, name)
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	at, parsed := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(raw)))
	if err = errors.Join(err, parsed); err == nil && now.Sub(at).Abs() > clock.Limit {
		err = errors.New("it was said when the clock showed another time")
	}
	return err == nil, errors.Join(err, durable.Remove(path))
}

func conditionsFile(data string) string { return filepath.Join(data, "conditions.json") }

// WriteConditions keeps what is up where `writ doctor` finds it.
func WriteConditions(data string, list []health.Condition) error {
	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return durable.Write(conditionsFile(data), append(raw, '\n'))
}

// ReadConditions of a data directory whose process runs.
func ReadConditions(data string) (list []health.Condition, err error) {
	raw, err := os.ReadFile(conditionsFile(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(raw, &list)
}
