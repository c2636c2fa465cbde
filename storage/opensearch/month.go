package opensearch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/storage"
)

// monthFormat is the end of an index's name that holds one month.
const monthFormat = "2006.01"

// home is the index that a document belongs to. A month's index is made when it
// is first written to; the template holds its mapping.
func (d *Documents) home(ctx context.Context, index string, doc storage.ValidDocument) (string, error) {
	member, months := storage.Appended[index]
	if !months {
		return d.alias(index), nil
	}
	text, _ := doc.Members[member].(string)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", &storage.SchemaError{Index: index, Pointer: "/" + member, Reason: "is no RFC 3339 time"}
	}
	name := d.alias(index) + "-" + t.UTC().Format(monthFormat)
	if _, made := d.cache.months.Load(name); !made {
		if err := d.make(ctx, name, object{}); err != nil {
			return "", err
		}
		d.cache.months.Store(name, true)
	}
	return name, nil
}

// homes are the indices that a document may be in.
func (d *Documents) homes(ctx context.Context, index string) ([]string, error) {
	if _, months := storage.Appended[index]; !months {
		return []string{d.alias(index)}, nil
	}
	var found map[string]any
	err := d.call(ctx, request{method: http.MethodGet, path: "/" + d.target(index) + "/_alias", repeat: true}, &found)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// DropBefore removes the months of an index that end before a time, of all
// tenants, and returns their names: retention without reading what is removed.
func (d *Documents) DropBefore(ctx context.Context, index string, before time.Time) ([]string, error) {
	if _, months := storage.Appended[index]; !months {
		return nil, fmt.Errorf("%s is not cut by months", index)
	}
	names, err := d.homes(ctx, index)
	if err != nil {
		return nil, err
	}
	var dropped []string
	for _, name := range names {
		month, err := time.Parse(monthFormat, strings.TrimPrefix(name, d.alias(index)+"-"))
		if err != nil || month.AddDate(0, 1, 0).After(before) {
			continue // not ours, or not expired
		}
		if err := d.drop(ctx, name); err != nil {
			return dropped, errors.Join(fmt.Errorf("drop %s", name), err)
		}
		d.cache.forget()
		dropped = append(dropped, name)
	}
	return dropped, nil
}
