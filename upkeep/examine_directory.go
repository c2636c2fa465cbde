package upkeep

import (
	"context"
	"errors"
	"fmt"
	"os"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router/breakers"
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
		list = append(list, found(check, "every row is as an intent of today could put it"))
	}
	versions, _ := approval.ReadVersions(e.Dir) // without them those that are approved
	for _, tenant := range d.Tenants() {
		for _, u := range datadir.UnmatchedNames(d, tenant, versions) {
			list = append(list, warned("names", u.String(), "correct the name, or leave it out: writ skill list and writ registry list show what there is"))
		}
	}
	if engine, err := e.Policy.Engine(ctx); err == nil { // else policy reports it
		for _, u := range datadir.UnmatchedInPolicy(engine, d, types, versions) {
			list = append(list, warned("names", u.String(), "correct the name in the policy, if it is not one that comes later"))
		}
	}
	stored, err := breakers.File(datadir.Breakers(e.Dir)).Read(ctx)
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
