package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
)

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
		return row, fmt.Errorf("%s: no type %q in the catalog%s", intents.UnknownIntent, typ, didYouMeanType(typ, types))
	}
	return row, nil
}

// didYouMeanType is ": did you mean …?" with the nearest type of a catalog, if one is near.
func didYouMeanType(typ string, types *catalog.Catalog) string {
	var known []string
	for _, r := range types.Rows() {
		known = append(known, r.Type)
	}
	return didYouMean(typ, known)
}

// with returns a catalog that has the type. If ours lacks it and no flag names a catalog, it is
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
