package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// examineLog runs the checks of a start on journal, key log and ledger, and reads
// the credentials of executors. It opens everything for reading only.
func examineLog(ctx context.Context, cfg Config) []Finding {
	const check = "log"
	list := []Finding{examineExecutors(cfg)}
	if err := checkParts(cfg.Dir); err != nil {
		return append(list, wrong(check, err, "put it back, or restore a backup: writ restore"))
	}
	if begun, err := parts[1].there(cfg.Dir); err == nil && !begun {
		return append(list, found(check, "none yet: the first start begins it"))
	}
	records, err := examineJournal(ctx, cfg.Dir)
	if err != nil {
		return append(list, wrong(check, err, "check all of it: writ audit fsck --data "+cfg.Dir))
	}
	return append(list, found(check, fmt.Sprintf("%d records, key log and ledger agree as far as a start looks", records)))
}

func examineJournal(ctx context.Context, dir string) (records int64, err error) {
	r, err := sqlite.OpenRecords(ctx, filepath.Join(dir, "journal"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Next() == 0 {
		return 0, nil // begun, and cut off before the genesis
	}
	if _, err := r.CheckKeys(ctx); err != nil {
		var damage *sqlite.DamageError
		if errors.As(err, &damage) {
			err = &alteredError{damage.Position, damage.Reason}
		}
		return 0, err
	}
	fold, err := foldOf(ctx, r)
	if err != nil {
		return 0, err
	}
	if err := ledger.CheckAhead(ledgerDir(dir), r.Next()); err != nil {
		return 0, err
	}
	if there, err := holdsBytes(tagFile(dir)); err != nil || !there {
		return r.Next(), err
	}
	if _, err := ledger.ReadSecret(tagFile(dir)); err != nil {
		return 0, err
	}
	k := keyring{dir: keysDir(dir), directory: fold}
	if err := k.load(); err != nil {
		return 0, err
	}
	log := ledger.NewReader(ledgerDir(dir), fold.Origin())
	if there, err := parts[3].there(dir); err != nil || !there {
		return r.Next(), err
	}
	c, err := log.Checkpoint(ctx, k.ledgerKeys()...)
	if err != nil || c.Size == 0 {
		return r.Next(), err
	}
	return r.Next(), checkSome(ctx, r, log.Judge(c), sampleOf(fold.Rests(), min(c.Size, r.Next())))
}

// examineExecutors: a file that cannot be read bars its executor.
func examineExecutors(cfg Config) Finding {
	const check = "executors"
	list, err := Outsiders(cfg.Dir)
	if err != nil {
		return wrong(check, err, "issue them anew: writ executor issue")
	}
	return found(check, fmt.Sprintf("credentials of %d", len(list)))
}
