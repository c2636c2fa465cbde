package upkeep

import (
	"context"
	"errors"
	"fmt"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// log runs the checks of a start on journal and ledger. It opens everything for reading only.
func (e Examination) log(ctx context.Context) Finding {
	const check = "log"
	if err := datadir.CheckParts(e.Dir, e.Documents); err != nil {
		return wrong(check, err, "put it back, or restore a backup: writ admin restore")
	}
	if begun, err := datadir.HasJournal(e.Dir); err == nil && !begun {
		return found(check, "none yet: the first start begins it")
	}
	records, err := checkLog(ctx, e.Dir)
	if err != nil {
		return wrong(check, err, "check all of it: writ audit fsck --data "+e.Dir)
	}
	return found(check, fmt.Sprintf("%d records and their ledger agree as far as a start looks", records))
}

// unwritten opens the journal so that reading leaves nothing behind.
func unwritten(ctx context.Context, dir string) (*sqlite.Records, error) {
	if datadir.InUse(dir) {
		return sqlite.OpenRecords(ctx, datadir.Journal(dir))
	}
	return sqlite.OpenClosed(ctx, datadir.Journal(dir))
}

func checkLog(ctx context.Context, dir string) (size int64, err error) {
	r, err := unwritten(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Next() == 0 {
		return 0, nil // begun, and cut off before the genesis
	}
	rebuilt, err := datadir.RebuildState(ctx, datadir.CheckedRecords{Records: r})
	if err != nil {
		return 0, err
	}
	if err := ledger.CheckAhead(datadir.Ledger(dir), r.Next()); err != nil {
		return 0, err
	}
	if there, err := datadir.HasTagSecret(dir); err != nil || !there {
		return r.Next(), err
	}
	if _, err := ledger.ReadSecret(datadir.Tags(dir)); err != nil {
		return 0, err
	}
	held, err := keydir.LoadAll(datadir.Keys(dir))
	if err != nil {
		return 0, err
	}
	if _, err := held.InForce(rebuilt.JWKS().Keys); err != nil {
		return 0, err
	}
	log := ledger.NewReader(datadir.Ledger(dir), rebuilt.Origin())
	if there, err := datadir.HasCheckpoint(dir); err != nil || !there {
		return r.Next(), err
	}
	c, err := log.Checkpoint(ctx, datadir.LedgerKeys(rebuilt)...)
	if err != nil || c.Size == 0 {
		return r.Next(), err
	}
	return r.Next(), datadir.CheckSample(ctx, r, log.Judge(c), rebuilt.Rests(), min(c.Size, r.Next()))
}

// executors: a file that cannot be read disables its executor, or its reader of events.
func (e Examination) executors() Finding {
	const check = "executors"
	list, err := datadir.Executors.List(e.Dir)
	readers, unread := datadir.EventReaders.List(e.Dir)
	if err := errors.Join(err, unread); err != nil {
		return warned(check, err.Error(), "issue them anew: "+datadir.Executors.Issue+", "+datadir.EventReaders.Issue)
	}
	return found(check, fmt.Sprintf("credentials of %d", len(list)+len(readers)))
}
