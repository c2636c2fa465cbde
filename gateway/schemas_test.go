package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
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

// TestPutSchema: an agent is put beside the others of the caller's tenant, by an intent; a document that is none, by none.
func TestPutSchema(t *testing.T) {
	w := newWorld(t, nil)
	put := func(path, body string) *agents.Revision {
		t.Helper()
		var done struct {
			Revision         int64
			Digest, IntentID string
		}
		w.call("PUT", path, body, nil, &done)
		signed := w.submits("registry.push")
		var push catalog.RegistryPush
		if err := json.Unmarshal(signed[len(signed)-1].Args(), &push); err != nil {
			t.Fatal(err)
		}
		r, err := agents.Unpack(push.Bundle)
		if err != nil || push.Tenant != "" || push.Digest != r.Digest() || done.Digest != push.Digest || done.Revision != push.Revision {
			t.Fatalf("%+v, %+v, %v", push, done, err)
		}
		w.set(func(c *core) {
			if push.Revision != c.inForce.Revision+1 {
				t.Errorf("revision %d", push.Revision)
			}
			c.inForce = bus.RegistryReply{Revision: push.Revision, Digest: push.Digest, Bundle: push.Bundle}
		})
		return r
	}
	put("/schemas/desk", `{"description":"Answers."}`)
	put("/schemas/shop", "{\n\t\"agent_id\": \"shop\", \"description\": \"Sells \\ud83c\\udf4e, \\\\ud83d\"}")
	r := put("/schemas/desk", `{"name":"desk","description":"Answers again.","properties":{"topic":{"type":"string","description":"what"},"about":{"type":"string","description":"whom"}}}`)
	if len(r.Agents) != 2 || r.Agents[0].Description != "Answers again." || r.Agents[1].Description != `Sells 🍎, \ud83d` || len(r.Files()) != 2 {
		t.Errorf("%+v", r.Files())
	}
	if text := string(r.Files()["agents/desk.yaml"]); strings.Index(text, "topic") > strings.Index(text, "about") {
		t.Errorf("another order: %s", text)
	}
	before := len(w.submits("registry.push"))
	for body, pointer := range map[string]string{`{"name":"desk","description":"x"}`: "/name", `{"description":"x","tolls":[]}`: "/tolls", `[]`: "", `{}`: "", `{"description":1}`: "/description"} {
		w.refused("PUT", "/schemas/other", body, nil, intents.SchemaInvalid, pointer)
	}
	w.refused("PUT", "/schemas/planner", `{"description":"x"}`, nil, intents.SchemaInvalid, "/name")
	w.set(func(c *core) { c.inForce.Bundle = "" })
	w.refused("PUT", "/schemas/desk", `{"description":"x"}`, nil, intents.PayloadTooLarge, "")
	if n := len(w.submits("registry.push")); n != before {
		t.Errorf("%d intents", n-before)
	}
}
