package opensearch

import (
	"aob.dev/writ/storage"
)

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
