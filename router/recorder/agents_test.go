package recorder_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// TestAgentRows: the agents of a registry are rows with their prompt and their definition, in the
// revision in force; removed ones are marked gone, and come back with it. Rebuilt from the records,
// the rows are the same.
func TestAgentRows(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	const shop, help = "name: shop\ndescription: Sells.\ninstructions: You sell.\nproperties:\n  topic: {type: string}\n", "name: help\ndescription: Helps.\n"
	type row struct {
		catalog.SchemaRow
		Version int64 `json:"version"`
	}
	rows := func() (out map[string]row) {
		f.caughtUp()
		page, err := d.Search(t.Context(), "default", storage.IndexSchemas, storage.Query{Sort: "name"})
		w.Must(err)
		out = map[string]row{}
		for _, doc := range page.Documents {
			var r row
			w.Must(json.Unmarshal(doc.Body, &r))
			out[doc.ID] = r
		}
		return out
	}
	w.PushAgents(1, map[string]string{"shop": shop, "help": help})
	first := rows()
	var schema struct {
		Type       string
		Properties map[string]any
	}
	if r := first["shop"]; len(first) != 2 || r.Kind != catalog.KindAgent || r.Version != 1 || json.Unmarshal(r.Schema, &schema) != nil || schema.Type != "object" || len(schema.Properties) != 1 || r.Content[:9] != "You sell." {
		t.Errorf("first %+v", first)
	}
	w.PushAgents(2, map[string]string{"shop": shop})
	if got := rows(); got["help"].Kind != catalog.KindRemoved || got["shop"].Version != 2 {
		t.Errorf("second %+v", got)
	}
	back := w.RegistryOf("default", 3, map[string]string{"shop": shop, "help": help})
	back.Bundle = ""
	w.Want(w.Admin("registry.push", back), intents.OK)
	last := rows()
	if last["help"].Kind != catalog.KindAgent || last["help"].Version != 3 {
		t.Errorf("third %+v", last)
	}
	f.stop()
	d = documents(t)
	f = follow(t, w, d)
	if diff := cmp.Diff(last, rows()); diff != "" {
		t.Errorf("made again (-before +now):\n%s", diff)
	}
	f.stop()
}
