package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents/catalog"
)

// TestPayloadsAreTyped: of a payload that is not of its declared type neither a model nor the
// user sees anything; one that is of it is shown. Cached for a minute, it then serves the same
// user's next turn without another call, and no other user's.
func TestPayloadsAreTyped(t *testing.T) {
	t.Parallel()
	agents := t.TempDir()
	const keeper = "name: keeper\ndescription: Knows the stock.\nenrichers:\n" +
		"  - {domain_type: stock, enricher_id: e, version: 1.2.0, schema: {type: array, items: {required: [item, quantity]}}}\n"
	if err := os.WriteFile(filepath.Join(agents, "keeper.yaml"), []byte(keeper), 0o600); err != nil {
		t.Fatal(err)
	}
	const bolts = `[{"item":"bolt","quantity":7}]`
	bodies := []string{
		`{"status":"ok","domain_type":"stock","enricher_id":"e","version":"1.3.0","payload":[{"s3cret":1}]}`,
		`{"status":"ok","domain_type":"stock","enricher_id":"e","version":"2.0.0","payload":[{"s3cret":1}]}`,
		`{"status":"ok","domain_type":"stock","enricher_id":"e","version":"1.3.0","payload":` + bolts + `}`,
	}
	var server *skillServer
	server = serveSkills(t, skill{name: "stock_list", about: "The stock of the warehouse.", input: `{"type":"object"}`, do: func(json.RawMessage) (any, error) {
		n := server.count("stock_list")
		return json.RawMessage(bodies[min(n, len(bodies))-1]), nil
	}})
	m := &mind{
		plan: func(planning) model.Call { return steps(step(1, "list the stock", "stock_list", 0, stockShape)) },
		act: func(in working) action {
			switch n := len(in.Calls); {
			case n == 0 || in.Calls[n-1].Error != "":
				return use("stock_list", `{"n":`+string(rune('0'+n))+`}`) // another call each time
			}
			return finish
		},
	}
	s := start(t, setup{Skills: []string{server.url}, Model: m, Agents: agents})
	got := s.ask(s.as("ana"), stockTask)
	if got.Status != "complete" || len(got.events("envelope.type_mismatch")) != 1 || len(got.events("envelope.version_mismatch")) != 1 {
		t.Fatalf("%s %s: %v %v", got.Status, got.Reason, got.events("envelope.type_mismatch"), got.events("envelope.version_mismatch"))
	}
	seen, err := json.Marshal(m.requests)
	if err != nil || strings.Contains(string(seen), "s3cret") || !strings.Contains(string(seen), "data unavailable") || !strings.Contains(string(seen), "bolt") {
		t.Errorf("the model saw %.3000s", seen)
	}
	answer, err := json.Marshal(got)
	if err != nil || strings.Contains(string(answer), "s3cret") {
		t.Errorf("the user saw %s", answer)
	}

	versions, err := approval.ReadVersions(s.dir)
	i := slices.IndexFunc(versions, func(v approval.Version) bool { return strings.HasSuffix(v.Name, ".stock_list") })
	if err != nil || i < 0 {
		t.Fatalf("declared: %+v, error %v", versions, err)
	}
	s.operate("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: versions[i].Name, Digest: versions[i].Digest, Effect: catalog.Pure, CacheSeconds: 3600})
	for i, want := range []struct {
		user   string
		calls  int // at the server, in all
		cached int
	}{{"ana", 4, 0}, {"ana", 4, 1}, {"ben", 5, 0}} {
		got := s.ask(s.as(want.user), stockTask)
		if n := server.count("stock_list"); got.Status != "complete" || n != want.calls || len(got.events("skill.cached")) != want.cached {
			t.Errorf("turn %d: %s %s, %d calls, kept %v", i, got.Status, got.Reason, n, got.events("skill.cached"))
		}
	}
}
