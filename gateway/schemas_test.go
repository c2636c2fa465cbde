package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/state/agents"
)

// TestSchemas: each agent by name, with its prompt and its definition.
func TestSchemas(t *testing.T) {
	w := newWorld(t, nil)
	type row struct {
		Name, Kind, Content string
		Schema              json.RawMessage `json:"json_schema"`
	}
	var all, one, none []row
	w.call("GET", "/schemas/", "", nil, &all)
	if len(all) != len(agents.Builtins())+1 || all[len(all)-1].Name != "shop" || all[0].Name != agents.Classifier {
		t.Errorf("%d rows: %+v", len(all), all)
	}
	w.call("GET", "/schemas/?name=dreaming-agent", "", nil, &one)
	if len(one) != 1 || one[0].Kind != "agent" {
		t.Fatalf("%+v", one)
	}
	var schema struct {
		Type        string
		Temperature float64
	}
	if err := json.Unmarshal(one[0].Schema, &schema); err != nil || schema.Temperature != 0.7 || schema.Type != "object" {
		t.Errorf("%+v, %v", schema, err)
	}
	w.call("GET", "/schemas/?name=general", "", nil, &one)
	if len(one) != 1 || !strings.Contains(one[0].Content, "## Thinking Structure") {
		t.Errorf("%+v", one)
	}
	w.call("GET", "/schemas/?name=shop", "", nil, &one)
	if len(one) != 1 || one[0].Content != "You sell." {
		t.Errorf("%+v", one)
	}
	w.call("GET", "/schemas/?name=nobody", "", nil, &none)
	if none == nil || len(none) != 0 {
		t.Errorf("%+v", none)
	}
	w.refused("GET", "/schemas/", "", map[string][]string{"X-User-Id": {"nobody"}}, intents.RBACForbidden, "/user_id")
}
