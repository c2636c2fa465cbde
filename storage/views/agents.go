package views

import (
	"cmp"
	"context"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// maxAgents is how many agents of a registry are listed.
const maxAgents = 1000

// Agents lists the agents or workflows of a tenant's registry, then those of system, which all
// tenants share.
func Agents(ctx context.Context, docs storage.Documents, tenant string, args catalog.SchemaList) (catalog.SchemaListResult, error) {
	q := storage.Query{Terms: map[string][]string{"kind": {cmp.Or(args.Kind, catalog.KindAgent)}}, Sort: "name", Limit: maxAgents}
	if args.Name != "" {
		q.Terms["name"] = []string{args.Name}
	}
	out := catalog.SchemaListResult{Schemas: []catalog.SchemaRow{}}
	if err := fresh(ctx, docs, storage.IndexSchemas); err != nil {
		return out, err
	}
	for _, of := range []string{tenant, storage.SystemTenant} {
		page, err := docs.Search(ctx, of, storage.IndexSchemas, q)
		if err != nil {
			return out, err
		}
		for _, doc := range page.Documents {
			var row catalog.SchemaRow
			if err := read(doc, &row); err != nil {
				return out, err
			}
			if !slices.ContainsFunc(out.Schemas, func(r catalog.SchemaRow) bool { return r.Name == row.Name }) {
				out.Schemas = append(out.Schemas, row)
			}
		}
	}
	return out, nil
}
