package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// Directory folds the record: what operators have put into force.
func (a *Archive) Directory(ctx context.Context) (*state.State, error) {
	d := state.New()
	for r, err := range a.Records.Scan(ctx, 0) {
		if err != nil {
			return nil, err
		}
		d.Observe(state.EntryOf(r))
	}
	return d, d.Err()
}

// examineDirectory: what operators put is what they meant. Rows that an earlier
// build let in, and that would be refused today, are told one by one.
func examineDirectory(ctx context.Context, cfg Config) []Finding {
	const check = "directory"
	if _, err := os.Stat(filepath.Join(cfg.Dir, "journal")); err != nil {
		return []Finding{found(check, "none yet: the first start makes it")}
	}
	d, err := foldedDirectory(ctx, cfg.Dir)
	if err != nil {
		return []Finding{wrong(check, fmt.Errorf("the record cannot be read: %w", err), "see writ audit fsck")}
	}
	var list []Finding
	types, _ := catalog.Open(cfg.Catalog) // else nil, the built-in rows: examinePolicy says what is wrong with it
	for _, m := range d.Misput(types) {
		text := fmt.Sprintf("tenant %s, %s: %s %s", m.Tenant, m.Row, m.Pointer, m.Reason)
		if m.Denies {
			list = append(list, Finding{Check: check, OK: true, Found: text, Do: m.Do})
			continue
		}
		list = append(list, wrong(check, errors.New(text), m.Do))
	}
	if len(list) == 0 {
		list = append(list, found(check, "every row is as an order of today could put it"))
	}
	return list
}

func foldedDirectory(ctx context.Context, dir string) (*state.State, error) {
	a, err := OpenArchive(ctx, dir)
	if err != nil {
		return nil, err
	}
	d, err := a.Directory(ctx)
	return d, errors.Join(err, a.Close())
}
