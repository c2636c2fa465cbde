package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/schemas"
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

// planIDs completes ids of plans, with their tasks.
func planIDs(std IO) cobra.CompletionFunc {
	return completing(std, func(ctx context.Context, t target) []string {
		var page catalog.PlanListResult
		if (client.Client{URL: t.URL.Value, Key: t.Key.Value}).Get(ctx, "/agent/plans", &page) != nil {
			return nil
		}
		var out []string
		for _, p := range page.Plans {
			out = append(out, p.PlanID+"\t"+oneLine(p.Task, 60))
		}
		return out
	})
}

// heldOrders completes ids of orders that wait for approval.
func heldOrders(std IO) cobra.CompletionFunc {
	return completing(std, func(ctx context.Context, t target) []string {
		var page bus.ApprovalsReply
		if (client.Client{URL: t.URL.Value, Key: t.Key.Value}).Get(ctx, "/agent/approvals", &page) != nil {
			return nil
		}
		var out []string
		for _, h := range page.Approvals {
			out = append(out, h.IntentID+"\t"+h.Type+" of "+printable(h.UserID))
		}
		return out
	})
}

// intentTypes completes types of the catalog. If writ runs, vendors' types are among them.
func intentTypes(std IO) cobra.CompletionFunc {
	return completing(std, func(ctx context.Context, t target) []string {
		rows, err := (&catalogFlags{url: t.URL.Value}).rows(ctx)
		if err != nil {
			if rows, err = (&catalogFlags{}).rows(ctx); err != nil {
				return nil
			}
		}
		var out []string
		for typ, row := range rows {
			out = append(out, typ+"\t"+printable(row.Title))
		}
		slices.Sort(out)
		return out
	})
}

// typeRow is a row of the catalog, as commands need it.
type typeRow struct {
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Capability string          `json:"capability"`
	Signers    []intents.Role  `json:"signed_by"`
	Executor   string          `json:"executor"`
	Effect     catalog.Effect  `json:"effect"`
	RandomKey  bool            `json:"random_key"`
	TTLSec     int             `json:"ttl_sec"`
	Args       json.RawMessage `json:"args_schema"`
	Result     json.RawMessage `json:"result_schema"`

	schema func() (*schemas.Schema, error) // of the arguments
}

// catalogFlags choose the catalog: the built-in one with a directory of vendors' types,
// or that of a running router.
type catalogFlags struct{ dir, url string }

func (f *catalogFlags) add(c *command) {
	c.Flags().StringVar(&f.dir, "catalog", "", "directory of vendors' intent types, in addition to the built-in ones")
	c.Flags().StringVar(&f.url, "catalog-url", "", "take the catalog of this router instead, http://host:port")
}

// row of a type.
func (f *catalogFlags) row(ctx context.Context, typ, url string) (typeRow, error) {
	rows, err := f.with(ctx, typ, url)
	if err != nil {
		return typeRow{}, err
	}
	row, ok := rows[typ]
	if !ok {
		return row, fmt.Errorf("%s: no type %q in the catalog%s", intents.UnknownIntent, typ, meant(typ, slices.Collect(maps.Keys(rows))))
	}
	return row, nil
}

// with are the rows of a catalog that has the type. If ours does not and no flag names a
// catalog, they are those of the writ at url, which may have vendors' types.
func (f *catalogFlags) with(ctx context.Context, typ, url string) (map[string]typeRow, error) {
	rows, err := f.rows(ctx)
	if _, ok := rows[typ]; err != nil || ok || typ == "" || f.dir != "" || f.url != "" || url == "" {
		return rows, err
	}
	theirs := catalogFlags{url: url}
	if more, err := theirs.rows(ctx); err == nil {
		return more, nil
	}
	return rows, nil
}

// rows of the catalog by type.
func (f *catalogFlags) rows(ctx context.Context) (map[string]typeRow, error) {
	own, err := catalog.Open(f.dir)
	if err != nil {
		return nil, malformed(err)
	}
	var doc struct {
		Intents []typeRow `json:"intents"`
	}
	if f.url == "" {
		if err := json.Unmarshal(own.Document(), &doc); err != nil {
			return nil, malformed(err)
		}
	} else if err := (client.Client{URL: f.url}).Get(ctx, "/v1/catalog", &doc); err != nil {
		return nil, err
	}
	out := make(map[string]typeRow, len(doc.Intents))
	for _, r := range doc.Intents {
		r.schema = func() (*schemas.Schema, error) { return schemas.Compile(r.Args) }
		if row, ok := own.Lookup(r.Type); ok && f.url == "" {
			r.schema = row.ArgsSchema
		}
		out[r.Type] = r
	}
	if len(out) == 0 {
		return nil, malformed(fmt.Errorf("%s serves no catalog", f.url))
	}
	return out, nil
}
