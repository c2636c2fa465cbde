package opensearch

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/storage"
)

// extras are the members that testdata/blueprint.json has not: ours in every
// index, the state and the companions that the gaps ask for.
var extras = map[string][]string{
	storage.IndexPlans: {
		"epoch", "facts", "failure", "max_steps", "plan_digest", "response", "revision", "task", "turn_id",
		"agent", "components", "route", "steps.after", "steps.agent", "steps.cause", "steps.id", "steps.inputs", "steps.parallel", "steps.revision", "steps.step", "steps.suggestion", "usage", "run", "workflow_id", "steps.type", "steps.attempts", "steps.retry_at", "steps.replayed", "workflow_complete", "replan_history.shape",
	},
	storage.IndexMemory:   {"skills", "ask", "embedder", "notes", "sources"},
	storage.IndexSessions: {"agent", "did", "resumed_from", "sources", "ttl_at", "ttl_minutes", "workflow_state", "messages.intent_summary"},
	storage.IndexEvents:   {"intent_id", "position", "seq", "user_id"},
}

// TestMappingsAreTheBlueprints: testdata/blueprint.json is what it prints. Only
// the engine differs, which is stated with its space.
func TestMappingsAreTheBlueprints(t *testing.T) {
	raw, err := os.ReadFile("testdata/blueprint.json")
	if err != nil {
		t.Fatal(err)
	}
	var printed map[string]map[string]any
	if err := json.Unmarshal(raw, &printed); err != nil {
		t.Fatal(err)
	}
	if len(printed) != 5 {
		t.Fatalf("%d mappings are printed", len(printed))
	}
	for index, want := range printed {
		got := mappingOf(t, Config{}, index)
		properties(t, got)["writ"] = nil
		delete(properties(t, got), "writ")
		for _, extra := range extras[index] {
			at := properties(t, got)
			parent, name, nested := strings.Cut(extra, ".")
			if !nested {
				parent, name = "", parent
			}
			if parent != "" {
				at = properties(t, at[parent])
			}
			if _, ok := at[name]; !ok {
				t.Errorf("%s has no %s, which is listed as an extra", index, extra)
			}
			delete(at, name)
		}
		if index == storage.IndexMemory {
			method, ok := properties(t, want)["embedding"].(map[string]any)["method"].(map[string]any)
			if !ok {
				t.Fatal("no method is printed")
			}
			method["engine"], method["space_type"] = "lucene", "cosinesimil"
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-blueprint +ours):\n%s", index, d)
		}
	}
}

// TestEveryMapping: strict, and with the tenant that the adapter filters by.
func TestEveryMapping(t *testing.T) {
	if len(storage.Indices) < 11 {
		t.Fatalf("%d indices", len(storage.Indices))
	}
	for _, index := range storage.Indices {
		m := mappingOf(t, Config{Dimension: 8, Engine: Faiss}, index)
		if m["dynamic"] != "strict" {
			t.Errorf("%s is not strict", index)
		}
		if d := cmp.Diff(map[string]any{"type": "keyword"}, properties(t, m)["tenant_id"]); d != "" {
			t.Errorf("%s: tenant_id (-want +got):\n%s", index, d)
		}
	}
	want := map[string]any{
		"type": "knn_vector", "dimension": 8.0,
		"method": map[string]any{"name": "hnsw", "engine": "faiss", "space_type": "cosinesimil"},
	}
	for _, index := range []string{storage.IndexMemory, storage.IndexChunks} {
		if d := cmp.Diff(want, properties(t, mappingOf(t, Config{Dimension: 8, Engine: Faiss}, index))["embedding"]); d != "" {
			t.Errorf("%s (-want +got):\n%s", index, d)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for want, c := range map[string]Config{
		"documents: ":            {URL: "nats://localhost"},
		"documents_prefix: ":     {URL: "http://localhost:9200", Prefix: "*"},
		"nmslib":                 {URL: "http://localhost:9200", Engine: "nmslib"},
		"neither lucene nor":     {URL: "http://localhost:9200", Engine: "annoy"},
		"vector_dimension: ":     {URL: "http://localhost:9200", Dimension: 16001},
		"documents_auth: ":       {URL: "http://localhost:9200", Authorization: "secret"},
		"documents_ca: ":         {URL: "https://localhost:9200", CA: []byte("no certificate")},
		"is no URL of a server,": {URL: "http://localhost:9200/path"},
	} {
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestKey: no id of one tenant is another's, however long.
func TestKey(t *testing.T) {
	long := strings.Repeat("x", 600)
	seen := map[string][2]string{}
	for _, k := range [][2]string{
		{"a", "b/c"},
		{"a/b", "c"},
		{"a", "b"},
		{"a%2Fb", "c"},
		{"a", long},
		{"b", long},
		{"a", long + "y"},
		{long, "b"},
		{long + "y", "b"},
		{"a", strings.TrimPrefix(key("a", long), "a/")},
		{"", "a/b"},
	} {
		id := key(k[0], k[1])
		if other, ok := seen[id]; ok || len(id) > keyLimit {
			t.Errorf("%.20q and %.20q are both %q", k, other, id)
		}
		seen[id] = k
	}
}

// mappingOf is a mapping as it is sent.
func mappingOf(t *testing.T, c Config, index string) map[string]any {
	t.Helper()
	c.URL = "http://localhost:9200"
	d, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.mapping(index)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func properties(t *testing.T, v any) map[string]any {
	t.Helper()
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%v has no properties", v)
	}
	p, ok := m["properties"].(map[string]any)
	if !ok {
		t.Fatalf("%v has no properties", v)
	}
	return p
}
