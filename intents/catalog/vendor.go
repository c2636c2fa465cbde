package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Bounds of a directory of vendors' rows.
const (
	MaxVendorRows = 256
	maxVendorFile = 1 << 20 // bytes: two schemas of 256 KiB, indented
)

// ReadVendors reads the rows of a directory: every *.json in it is one row with
// its two schemas (schemas/catalog_row.schema.json), named after its type.
//
//	x.acme.echo.json: {"type":"x.acme.echo","title":"Repeat a text","capability":"x.acme:echo",
//	 "signed_by":["task"],"executor":"x-acme","effect":"pure","args_schema":{…},"result_schema":{…}}
//
// The error names all mistakes, each with its file and member. Rows come sorted by type.
func ReadVendors(dir string) ([]Row, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	var rows []Row
	var wrong []error
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".json" {
			continue
		}
		row, err := readVendor(filepath.Join(dir, e.Name()))
		rows, wrong = append(rows, row), append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	if len(rows) == 0 || len(rows) > MaxVendorRows {
		return nil, fmt.Errorf("catalog: %s holds %d rows: a file x.<vendor>.<name>.json for each type, from 1 to %d", dir, len(rows), MaxVendorRows)
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Type, b.Type) })
	return rows, nil
}

func readVendor(path string) (Row, error) {
	at := func(pointer, reason string) error {
		if pointer != "" {
			pointer = " at " + pointer
		}
		return fmt.Errorf("%s%s: %s", path, pointer, reason)
	}
	info, err := os.Stat(path)
	if err != nil {
		return Row{}, err
	}
	if info.Size() > maxVendorFile {
		return Row{}, at("", "has more than 1 MiB")
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return Row{}, err
	}
	if _, err := intents.Canonical(raw); err != nil { // no duplicate members, nothing that a digest would change
		var r *intents.Refusal
		if errors.As(err, &r) {
			return Row{}, at(r.Pointer, r.Reason)
		}
		return Row{}, err
	}
	shape, err := schemas.Lookup(schemas.Base + "catalog_row.json")
	if err != nil {
		return Row{}, err
	}
	var wrong []error
	for _, v := range shape.ValidateBytes(raw) {
		wrong = append(wrong, at(v.Pointer, v.Reason))
	}
	if err := errors.Join(wrong...); err != nil {
		return Row{}, err
	}
	var doc struct {
		publishedRow
		Schema string `json:"$schema"`
	}
	if err := intents.UnmarshalStrict(raw, &doc); err != nil {
		return Row{}, at("", "is no row")
	}
	row := doc.row()
	vendor := strings.Split(row.Type, ".")[1]
	if filepath.Base(path) != row.Type+".json" {
		wrong = append(wrong, at("/type", "the file must be called "+row.Type+".json"))
	}
	if !strings.HasPrefix(row.Capability, "x."+vendor+":") {
		wrong = append(wrong, at("/capability", "must be in the vendor's own area: x."+vendor+":<verb>"))
	}
	if row.Executor != "x-"+vendor && !strings.HasPrefix(row.Executor, "x-"+vendor+"-") {
		wrong = append(wrong, at("/executor", "must be the vendor's own: x-"+vendor+", or x-"+vendor+"-<name>"))
	}
	if _, err := row.args(); err != nil {
		wrong = append(wrong, at("/args_schema", err.Error()))
	}
	if _, err := row.result(); err != nil {
		wrong = append(wrong, at("/result_schema", err.Error()))
	}
	return row, errors.Join(wrong...)
}
