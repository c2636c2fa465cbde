package plans

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// maxSchemas is how many agents of a registry are listed.
const maxSchemas = 1000

// schemas lists the agents or workflows of the tenant's registry, then those of system, which all
// tenants share.
func (p plans) schemas(ctx context.Context, o *executors.Intent, args catalog.SchemaList) (*executors.Result, error) {
	q := storage.Query{Terms: map[string][]string{"kind": {cmp.Or(args.Kind, catalog.KindAgent)}}, Sort: "name", Limit: maxSchemas}
	if args.Name != "" {
		q.Terms["name"] = []string{args.Name}
	}
	out := catalog.SchemaListResult{Schemas: []catalog.SchemaRow{}}
	for _, tenant := range []string{o.Ticket.Actor.Tenant, "system"} {
		page, err := p.docs.Search(ctx, tenant, storage.IndexSchemas, q)
		if err != nil {
			return nil, executors.Store(err)
		}
		for _, doc := range page.Documents {
			var row catalog.SchemaRow
			if err := json.Unmarshal(doc.Body, &row); err != nil {
				return nil, executors.Fail(intents.ExecutorFailed, "a stored agent cannot be read")
			}
			if !slices.ContainsFunc(out.Schemas, func(r catalog.SchemaRow) bool { return r.Name == row.Name }) {
				out.Schemas = append(out.Schemas, row)
			}
		}
	}
	return &executors.Result{Value: out}, nil
}
