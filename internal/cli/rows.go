package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/schemas"
)

// typeRow is a row of the catalog as commands need it.
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

// catalogFlags say whose catalog counts: our own with a directory of vendors'
// types, or a running router's.
type catalogFlags struct{ dir, url string }

func (f *catalogFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "catalog", "", "directory of vendors' intent types, beside the built-in ones")
	cmd.Flags().StringVar(&f.url, "catalog-url", "", "router whose catalog counts instead, http://host:port")
}

// row of a type.
func (f *catalogFlags) row(ctx context.Context, typ, url string) (typeRow, error) {
	rows, err := f.with(ctx, typ, url)
	if err != nil {
		return typeRow{}, err
	}
	row, ok := rows[typ]
	if !ok {
		return row, no(fmt.Errorf("%s: no type %q in the catalog%s", intents.UnknownIntent, typ, meant(typ, names(rows))))
	}
	return row, nil
}

// with are the rows that have a type: where ours do not, and no flag says where to
// look, those of the writ at url, which may have vendors' types.
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
		return nil, no(err)
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
