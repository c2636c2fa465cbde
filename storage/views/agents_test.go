package views_test

import (
	"encoding/json"
	"slices"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/views"
)

// TestAgentRows: a tenant's agents come before those of system, and what is gone is not
// there.
func TestAgentRows(t *testing.T) {
	docs := open(t)
	agentRows(t, docs, func() {})
}

func agentRows(t *testing.T, docs storage.Documents, written func()) {
	t.Helper()
	for n, row := range []struct{ tenant, name, kind, content string }{
		{"system", "shop", catalog.KindAgent, "all sell"},
		{"system", "help", catalog.KindAgent, "all help"},
		{"acme", "shop", catalog.KindAgent, "acme sells"},
		{"acme", "old", catalog.KindRemoved, ""},
		{"other", "theirs", catalog.KindAgent, "they do"},
	} {
		body, err := json.Marshal(map[string]any{
			"name": row.name, "tenant_id": row.tenant, "kind": row.kind, "version": 1, "content": row.content,
			"json_schema": map[string]any{"type": "object", "properties": map[string]any{"any": 1}}, "created_at": intents.FormatTime(start),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := docs.Put(t.Context(), row.tenant, storage.IndexSchemas, storage.Document{ID: row.name, Position: int64(n + 1), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	written()
	for name, want := range map[string][]string{"": {"acme sells", "all help"}, "help": {"all help"}, "old": {}, "theirs": {}} {
		got, err := views.Agents(t.Context(), docs, "acme", catalog.SchemaList{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		var contents []string
		for _, r := range got.Schemas {
			contents = append(contents, r.Content)
		}
		if !slices.Equal(want, contents) {
			t.Errorf("%q: %v", name, contents)
		}
	}
}
