package storage_test

import (
	"encoding/json"
	"slices"
	"testing"

	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
)

// TestFieldsOfEveryIndex: every index says whose its documents are, and bounds
// what is matched as a whole to what every store can match.
func TestFieldsOfEveryIndex(t *testing.T) {
	for _, index := range storage.Indices {
		s, err := schemas.Storage(index)
		if err != nil {
			t.Fatal(err)
		}
		var root tree
		if err := json.Unmarshal(s.Source(), &root); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(root.Required, "tenant_id") {
			t.Errorf("%s does not require tenant_id", index)
		}
		root.bounded(t, index)
		if member, ok := storage.Appended[index]; ok && !slices.Contains(root.Required, member) {
			t.Errorf("%s grows by %s, which it does not require", index, member)
		}
	}
}

type tree struct {
	Type       any             `json:"type"`
	Enum       []any           `json:"enum"`
	Format     string          `json:"format"`
	Pattern    string          `json:"pattern"`
	MaxLength  int             `json:"maxLength"`
	Kind       string          `json:"x-writ-kind"`
	Items      *tree           `json:"items"`
	Properties map[string]tree `json:"properties"`
	Required   []string        `json:"required"`
}

func (n tree) bounded(t *testing.T, path string) {
	t.Helper()
	if n.Type == "string" && n.Kind == "" && n.Format == "" && n.Pattern == "" && (n.MaxLength == 0 || n.MaxLength > 1024) {
		t.Errorf("%s is a keyword that may be longer than 1024", path)
	}
	if n.Items != nil {
		n.Items.bounded(t, path+"[]")
	}
	for name, p := range n.Properties {
		p.bounded(t, path+"."+name)
	}
}

func TestFieldKinds(t *testing.T) {
	got := map[string]storage.FieldKind{}
	var walk func(path string, list []storage.Field)
	walk = func(path string, list []storage.Field) {
		for _, f := range list {
			got[path+f.Name] = f.Kind
			walk(path+f.Name+".", f.Fields)
		}
	}
	for _, index := range []string{storage.IndexMemory, storage.IndexPlans, storage.IndexEvents} {
		list, err := storage.Fields(index)
		if err != nil {
			t.Fatal(err)
		}
		walk(index+".", list)
	}
	for member, want := range map[string]storage.FieldKind{
		"agent_memory.text": storage.Text, "agent_memory.embedding": storage.Dense, "agent_memory.scope": storage.Keyword,
		"agent_memory.ttl_at": storage.Date, "agent_memory.step_index": storage.Integer, "agent_events.position": storage.Long,
		"agent_events.payload": storage.Opaque, "agent_plans.steps": storage.Nested, "agent_plans.steps.skills": storage.Keyword,
		"agent_plans.steps.validated": storage.Boolean, "agent_plans.failure": storage.Object, "agent_plans.failure.last_failure.reason": storage.Text,
	} {
		if got[member] != want {
			t.Errorf("%s is %q, want %q", member, got[member], want)
		}
	}
	if _, err := storage.Fields("agent_rumours"); err == nil {
		t.Error("an index that is none has fields")
	}
}
