package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// directory: the directory data are valid. Rows that an earlier version accepted and that would be
// refused today are listed one by one; so are skill servers that are not called because they fail.
func (e Examination) directory(ctx context.Context) []Finding {
	const check = "directory"
	if _, err := os.Stat(datadir.Journal(e.Dir)); err != nil {
		return []Finding{found(check, "none yet: the first start makes it")}
	}
	d, err := rebuildState(ctx, e.Dir)
	if err != nil {
		return []Finding{wrong(check, fmt.Errorf("the record cannot be read: %w", err), "see writ audit fsck")}
	}
	var list []Finding
	types, _ := catalog.Open(e.Catalog) // else nil: policy reports what is wrong with it
	for _, m := range d.Misput(types) {
		text := fmt.Sprintf("tenant %s, %s: %s %s", m.Tenant, m.Row, m.Pointer, m.Reason)
		if m.Denies {
			list = append(list, warned(check, text, m.Do))
			continue
		}
		list = append(list, wrong(check, errors.New(text), m.Do))
	}
	if len(list) == 0 {
		list = append(list, found(check, "every row is valid today"))
	}
	versions, _ := approval.ReadVersions(e.Dir) // without them those that are approved
	for _, tenant := range d.Tenants() {
		for _, u := range datadir.UnmatchedNames(d, tenant, versions) {
			list = append(list, warned("names", u.String(), "correct the name, or leave it out: writ skill list and writ registry list show what there is"))
		}
	}
	if engine, err := e.Policy.Engine(); err == nil { // else policy reports it
		for _, u := range datadir.UnmatchedInPolicy(engine, d, types, versions) {
			list = append(list, warned("names", u.String(), "correct the name in the policy, if it is not one that comes later"))
		}
	}
	stored, err := breakers.Read(ctx, durable.Document(datadir.Breakers(e.Dir)))
	if err != nil {
		list = append(list, warned("breakers", err.Error(), "nothing need be done: the next start calls all skill servers"))
	}
	for _, b := range stored {
		if b.Status != breakers.Closed {
			list = append(list, warned("breakers", "tenant "+b.Tenant+": skill server "+b.String(), "see whether it runs; nothing need be done here"))
		}
	}
	return list
}

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
	return found(check, fmt.Sprintf("%d records; they agree with the ledger as far as a start checks", records))
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

// maxBarred bounds the findings of files that this user may not use.
const maxBarred = 20

// rights: this user may read and write what is in the data directory, down to its second level;
// below that are only blobs and tiles.
func (e Examination) rights() (list []Finding) {
	more := 0
	_ = filepath.WalkDir(e.Dir, func(path string, d fs.DirEntry, err error) error {
		at, _ := filepath.Rel(e.Dir, path)
		barred := datadir.MayNot(path, true)
		switch {
		case barred != nil && len(list) == maxBarred:
			more++
		case barred != nil:
			list = append(list, wrong("data", barred, ""))
		}
		if d != nil && d.IsDir() && (barred != nil || err != nil || strings.Count(at, string(filepath.Separator)) > 0) {
			return fs.SkipDir
		}
		return nil
	})
	if more > 0 {
		list = append(list, wrong("data", fmt.Errorf("%d more are not this user's", more), giveIt))
	}
	return list
}

// files: this user may read what the configuration names.
func (e Examination) files() (list []Finding) {
	for _, path := range slices.Concat(e.Secrets, e.Named) {
		if err := datadir.MayNot(path, false); path != "" && err != nil {
			list = append(list, wrong("files", err, ""))
		}
	}
	return list
}
