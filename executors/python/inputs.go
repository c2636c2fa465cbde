package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// input is the content of the script's input file: its one input, or several as one JSON object, by
// name.
func (p python) input(ctx context.Context, o *executors.Intent, args catalog.ExecPython) (d executors.Data, given bool, err error) {
	if len(args.Inputs) == 0 {
		return o.Data(ctx, p.blobs, "/input", args.Input)
	}
	var parts []io.Reader
	var open closers
	defer func() {
		if err != nil {
			_ = open.Close()
		}
	}()
	between := "{"
	for _, name := range slices.Sorted(maps.Keys(args.Inputs)) {
		at := catalog.InputAt(name)
		if err := p.isDocument(ctx, o, at, name); err != nil {
			return d, false, err
		}
		one, _, err := o.Data(ctx, p.blobs, at, nil)
		if err != nil {
			return d, false, err
		}
		open = append(open, one)
		before := between + `"` + name + `":` // its schema allows no character that JSON escapes
		parts = append(parts, bytes.NewReader([]byte(before)), one)
		d.Size += int64(len(before)) + one.Size
		between = ","
	}
	parts = append(parts, bytes.NewReader([]byte("}")))
	d.Size++
	d.ReadCloser = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(parts...), open}
	return d, true, nil
}

// isDocument refuses an input that is not exactly one JSON document: whatever else it is
// could pass for another member of the object.
func (p python) isDocument(ctx context.Context, o *executors.Intent, at, name string) error {
	d, given, err := o.Data(ctx, p.blobs, at, nil)
	if err != nil {
		return err
	}
	depth, documents := 0, 0
	if given {
		defer d.Close()
		dec := json.NewDecoder(d)
		for err == nil && documents < 2 {
			var token json.Token
			token, err = dec.Token()
			switch token {
			case json.Delim('['), json.Delim('{'):
				depth++
				continue
			case json.Delim(']'), json.Delim('}'):
				depth--
			}
			if err == nil && depth == 0 {
				documents++
			}
		}
	}
	if documents != 1 || !errors.Is(err, io.EOF) {
		return executors.Fail(intents.MalformedArgs, "the input "+name+" is not one JSON document: have a script work on it alone first")
	}
	return nil
}

// closers closes all of them.
type closers []io.Closer

func (c closers) Close() error {
	var all []error
	for _, x := range c {
		all = append(all, x.Close())
	}
	return errors.Join(all...)
}
