package router

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Begin commits the genesis as record 0. A crash before it leaves an empty journal, and the next
// start begins again with the same keys.
func Begin(ctx context.Context, j storage.Journal, token string, now time.Time) error {
	return commitControl(ctx, j, state.Control{Genesis: &token, Rules: state.Rules}, now, state.SubjectKeys, state.SubjectPolicy, state.SubjectTenant("system"), state.SubjectTenant("default"))
}

// commitControl appends a control record.
func commitControl(ctx context.Context, j storage.Journal, c state.Control, now time.Time, writes ...storage.Subject) error {
	rec, err := storage.RecordOf(storage.KindControl, now, c)
	if err != nil {
		return err
	}
	res, err := j.Commit(ctx, storage.Commit{ID: rand.Text(), Entries: []storage.Entry{{Record: rec, Target: storage.NoPosition, Writes: writes}}})
	if err != nil {
		return err
	}
	if res.Verdict != storage.Won {
		return fmt.Errorf("control record was not committed")
	}
	return nil
}
