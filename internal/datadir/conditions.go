package datadir

import (
	"context"
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

// Names of the conditions that end when an operator confirms them.
const (
	ConditionClock   = "clock"   // it has jumped
	ConditionLedger  = "ledger"  // leaves are missing
	ConditionWitness = "witness" // a witness has seen another log
)

// ConditionAside is the condition that records could not be projected. It outlives the process,
// because the next one does not add the missing documents.
const ConditionAside = "projection"

// Confirmable are these conditions.
var Confirmable = []string{ConditionClock, ConditionLedger, ConditionWitness}

func confirmFile(data, name string) string { return filepath.Join(data, "confirm", name) }

// ErrNobodyRuns reports that no process uses a data directory.
var ErrNobodyRuns = errors.New("no writ runs on this data directory")

// confirmLook is how often Confirm looks whether the process has accepted it.
const confirmLook = 50 * time.Millisecond

// Confirm tells the process of a data directory that an operator has checked a condition, and waits
// until the process has accepted that. Anybody with write access to the directory may confirm,
// since the keys are there, too.
func Confirm(ctx context.Context, data, name string, now func() time.Time) error {
	if !slices.Contains(Confirmable, name) {
		return fmt.Errorf("%q cannot be confirmed: only %s", name, strings.Join(Confirmable, ", "))
	}
	if _, err := os.Stat(data); err != nil {
		return Exists(data)
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
	if clock.Every(ctx, confirmLook, func() bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}) != nil {
		return errors.Join(errors.New("the process has not accepted it in time"), os.Remove(path))
	}
	return nil
}

// TakeConfirmed calls take once for a condition that an operator has confirmed. A
// confirmation counts only if it was written at about the present time. The file is
// removed after take: whoever waits in Confirm must not go on before.
func TakeConfirmed(data, name string, now time.Time, take func()) error {
	path := confirmFile(data, name)
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	at, parsed := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(raw)))
	if err = errors.Join(err, parsed); err == nil && now.Sub(at).Abs() > clock.Limit {
		err = errors.New("it was written when the clock showed another time")
	}
	if err == nil {
		take()
	}
	return errors.Join(err, durable.Remove(path))
}

func conditionsFile(data string) string { return filepath.Join(data, "conditions.json") }

// WriteConditions stores the present conditions where `writ doctor` finds them.
func WriteConditions(data string, list []health.Condition) error {
	return durable.WriteJSON(conditionsFile(data), list)
}

// ReadConditions of a data directory that a process uses.
func ReadConditions(data string) (list []health.Condition, err error) {
	_, err = durable.ReadJSON(conditionsFile(data), &list)
	return list, err
}
