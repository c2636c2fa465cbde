package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/client"
)

// completionTime bounds a completion, because somebody who types waits for it.
const completionTime = 2 * time.Second

// completing completes the first argument with what find returns. If find fails or takes
// too long, there is nothing to choose from.
func completing(std IO, find func(ctx context.Context, t target) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if cmd.Context() == nil {
			cmd.SetContext(context.Background())
		}
		t, err := aim(cmd, std)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		return find(ctx, t), cobra.ShellCompDirectiveNoFileComp
	}
}

// listed completes what the gateway lists at a path.
func listed[Page any](path string, rows func(Page) []string) func(IO) cobra.CompletionFunc {
	return func(std IO) cobra.CompletionFunc {
		return completing(std, func(ctx context.Context, t target) []string {
			var page Page
			if (client.Client{URL: t.URL.Value, Key: t.Key.Value}).Get(ctx, path, &page) != nil {
				return nil
			}
			return rows(page)
		})
	}
}

// planIDs completes ids of plans, with their tasks.
var planIDs = listed("/agent/plans", func(page catalog.PlanListResult) (out []string) {
	for _, p := range page.Plans {
		out = append(out, p.PlanID+"\t"+oneLine(p.Task, 60))
	}
	return out
})

// runIDs completes ids of runs.
var runIDs = listed(runsPath, func(page catalog.PlanListResult) (out []string) {
	for _, p := range page.Plans {
		out = append(out, p.PlanID+"\t"+p.Run.WorkflowID+", "+string(p.Status))
	}
	return out
})

// workflowIDs completes names of workflows.
var workflowIDs = listed("/schemas/?kind=workflow", func(rows []catalog.SchemaRow) (out []string) {
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return out
})

// heldOrders completes ids of orders that wait for approval.
var heldOrders = listed("/agent/approvals", func(page bus.ApprovalsReply) (out []string) {
	for _, h := range page.Approvals {
		out = append(out, h.IntentID+"\t"+h.Type+" of "+printable(h.UserID))
	}
	return out
})

// intentTypes completes types of the catalog. If writ runs, vendors' types are among them.
func intentTypes(std IO) cobra.CompletionFunc {
	return completing(std, func(ctx context.Context, t target) []string {
		types, err := (&catalogFlags{url: t.URL.Value}).open(ctx)
		if err != nil {
			types = catalog.Builtin()
		}
		var out []string
		for _, row := range types.Rows() {
			out = append(out, row.Type+"\t"+printable(row.Title))
		}
		slices.Sort(out)
		return out
	})
}

// catalogFlags choose the catalog: the built-in one with a directory of vendors' types,
// or that of a running router.
type catalogFlags struct{ dir, url string }

func (f *catalogFlags) add(c *command) {
	c.Flags().StringVar(&f.dir, "catalog", "", "directory of vendors' intent types, in addition to the built-in ones")
	c.Flags().StringVar(&f.url, "catalog-url", "", "take the catalog of this router instead, http://host:port")
}

// row of a type.
func (f *catalogFlags) row(ctx context.Context, typ, url string) (catalog.Row, error) {
	types, err := f.with(ctx, typ, url)
	if err != nil {
		return catalog.Row{}, err
	}
	row, ok := types.Lookup(typ)
	if !ok {
		return row, fmt.Errorf("%s: no type %q in the catalog%s", intents.UnknownIntent, typ, meantType(typ, types))
	}
	return row, nil
}

// meantType is ": did you mean …?" with the nearest type of a catalog, if one is near.
func meantType(typ string, types *catalog.Catalog) string {
	var known []string
	for _, r := range types.Rows() {
		known = append(known, r.Type)
	}
	return meant(typ, known)
}

// with is a catalog that has the type. If ours does not and no flag names a catalog, it is
// that of the writ at url, which may have vendors' types.
func (f *catalogFlags) with(ctx context.Context, typ, url string) (*catalog.Catalog, error) {
	types, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := types.Lookup(typ); ok || typ == "" || f.dir != "" || f.url != "" || url == "" {
		return types, nil
	}
	if theirs, err := (&catalogFlags{url: url}).open(ctx); err == nil {
		return theirs, nil
	}
	return types, nil
}

// open is the catalog that the flags choose.
func (f *catalogFlags) open(ctx context.Context) (*catalog.Catalog, error) {
	if f.url == "" {
		own, err := catalog.Open(f.dir)
		if err != nil {
			return nil, malformed(err)
		}
		return own, nil
	}
	var doc json.RawMessage
	if err := (client.Client{URL: f.url}).Get(ctx, "/v1/catalog", &doc); err != nil {
		return nil, err
	}
	theirs, err := catalog.Read(doc)
	if err != nil || len(theirs.Rows()) == 0 {
		return nil, malformed(fmt.Errorf("%s serves no catalog", f.url))
	}
	return theirs, nil
}
