package sqlite

import (
	"context"
	"fmt"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/judge"
)

// Import appends the next entries of another journal unchanged: they were judged there.
// Nothing else may write to this journal. A crash leaves all of them or none. The IDs of
// commits are not copied, so a copy does not recognize a repeated commit.
func (j *Journal) Import(ctx context.Context, entries []storage.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := judge.CheckKeys(entries); err != nil {
		return err
	}
	return j.DoAlone(ctx, func(ctx context.Context) error {
		d := &judge.Draft{Entries: entries}
		for i, e := range entries {
			if want := j.State.Next() + int64(i); e.Record.Position != want {
				return fmt.Errorf("import: record %d comes where record %d is next", e.Record.Position, want)
			}
		}
		if err := j.db.transact(ctx, func() error { return j.writeDraft(ctx, d) }); err != nil {
			return j.writeFailed(err)
		}
		j.publish(d)
		return nil
	})
}
