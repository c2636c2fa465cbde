package opensearch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"aob.dev/writ/storage"
)

// Migrate creates missing templates, indices and aliases, and adds new members to those
// that exist. What cannot be changed in place, such
// as the engine or the dimension of vectors, is an error: the index must be
// rebuilt. It may be repeated, and run by several processes at once.
func (d *Documents) Migrate(ctx context.Context) error {
	names, err := d.blocked(ctx)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("index %s takes no writes, as a reindex of it was cut off: run `writ admin storage reindex --search %s`",
			names[0], strings.TrimPrefix(names[0][:strings.LastIndex(names[0], "-")], d.cfg.Prefix))
	}
	for _, index := range storage.Indices {
		if err := d.migrate(ctx, index); err != nil {
			return fmt.Errorf("index %s%s: %w", d.cfg.Prefix, index, err)
		}
	}
	return nil
}

func (d *Documents) migrate(ctx context.Context, index string) error {
	if err := d.template(ctx, index); err != nil {
		return err
	}
	mapping, err := d.mapping(index)
	if err != nil {
		return err
	}
	if _, months := storage.Appended[index]; !months {
		if err := d.first(ctx, index); err != nil {
			return err
		}
	}
	err = d.put(ctx, "/"+d.target(index)+"/_mapping?allow_no_indices=true", mapping)
	if statusOf(err) == http.StatusBadRequest {
		return fmt.Errorf("its mapping is another (vectors of %s, dimension %d, are configured), and cannot be changed in place: run `writ admin storage reindex --search %s`, or configure what it has: %w",
			d.cfg.Engine, d.cfg.Dimension, index, err)
	}
	return err
}

// template puts what indices of a name are made from.
func (d *Documents) template(ctx context.Context, index string) error {
	fields, err := storage.Fields(index)
	if err != nil {
		return err
	}
	mapping, err := d.mapping(index)
	if err != nil {
		return err
	}
	return d.put(ctx, "/_index_template/"+d.alias(index), object{
		"index_patterns": []string{d.alias(index) + "-*"}, "priority": 200,
		"template": object{"settings": settings(fields), "mappings": mapping},
	})
}

// first creates the index behind a missing alias.
func (d *Documents) first(ctx context.Context, index string) error {
	if there, err := d.aliased(ctx, index); there || err != nil {
		return err
	}
	return d.make(ctx, d.alias(index)+"-000001", object{"aliases": object{d.alias(index): object{}}})
}

// aliased reports whether the alias of an index exists.
func (d *Documents) aliased(ctx context.Context, index string) (bool, error) {
	err := d.call(ctx, request{method: http.MethodGet, path: "/_alias/" + d.alias(index), repeat: true}, nil)
	if statusOf(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// make creates an index from its template, unless it exists.
func (d *Documents) make(ctx context.Context, name string, body object) error {
	err := d.put(ctx, "/"+name, body)
	if f := (*failure)(nil); errors.As(err, &f) && f.kind == "resource_already_exists_exception" {
		return nil
	}
	return err
}

// put is a write that may be repeated.
func (d *Documents) put(ctx context.Context, path string, body object) error {
	return d.call(ctx, request{method: http.MethodPut, path: path, body: body, repeat: true}, nil)
}

// alias of an index: what documents are written to, where it is not cut by months.
func (d *Documents) alias(index string) string { return d.cfg.Prefix + index }

// target is the search target of an index.
func (d *Documents) target(index string) string {
	if _, months := storage.Appended[index]; months {
		return d.alias(index) + "-*"
	}
	return d.alias(index)
}

// targets are the search targets of several indices.
func (d *Documents) targets(indices []string) string {
	list := make([]string, len(indices))
	for i, index := range indices {
		list[i] = d.target(index)
	}
	return strings.Join(list, ",")
}

// object is JSON that is sent.
type object map[string]any

// own is the member that the adapter adds to every document.
const own = "writ"

// mapping of an index, strict, from the fields of its schema.
func (d *Documents) mapping(index string) (object, error) {
	fields, err := storage.Fields(index)
	if err != nil {
		return nil, err
	}
	properties := d.properties(fields)
	properties[own] = object{"dynamic": "strict", "properties": object{
		"position": object{"type": "long"}, "id": object{"type": "keyword"},
	}}
	return object{"dynamic": "strict", "properties": properties}, nil
}

func (d *Documents) properties(fields []storage.Field) object {
	out := object{}
	for _, f := range fields {
		out[f.Name] = d.property(f)
	}
	return out
}

func (d *Documents) property(f storage.Field) object {
	switch f.Kind {
	case storage.Dense:
		return object{"type": "knn_vector", "dimension": d.cfg.Dimension, "method": object{
			"name": "hnsw", "engine": d.cfg.Engine, "space_type": "cosinesimil",
		}}
	case storage.Opaque:
		return object{"type": "object", "enabled": false}
	case storage.Object, storage.Nested:
		return object{"type": string(f.Kind), "properties": d.properties(f.Fields)}
	default:
		return object{"type": string(f.Kind)}
	}
}

// settings of an index. Words are what the embedded store takes for words: runs
// of letters, numbers and marks, in lower case; longer ones than the server can
// index are cut.
func settings(fields []storage.Field) object {
	index := object{"number_of_shards": 1, "auto_expand_replicas": "0-1"}
	for _, f := range fields {
		if f.Kind == storage.Dense {
			index["knn"] = true
			// Bodies are given back as they came, embeddings too.
			index["knn.derived_source.enabled"] = false
		}
	}
	return object{"index": index, "analysis": object{
		"tokenizer": object{"words": object{"type": "pattern", "pattern": `[^\p{L}\p{N}\p{M}]+`}},
		"filter":    object{"cut": object{"type": "truncate", "length": 1024}},
		"analyzer":  object{"default": object{"type": "custom", "tokenizer": "words", "filter": []string{"lowercase", "cut"}}},
	}}
}
