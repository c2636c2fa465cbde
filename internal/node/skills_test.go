package node

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/mcptest"
	"aob.dev/writ/policies"
)

// withSkills is a configuration with one skill server.
func withSkills(dir string, s *mcptest.Server) (Config, *messages) {
	cfg, log := config(dir), newMessages()
	cfg.Skills = []string{"trust=true -- " + s.URL()}
	cfg.Log = log.logger()
	return cfg, log
}

const (
	saysDown = "a skill server does not answer, and its skills are missing until it does: start it, or correct --skills; writ will ask it again"
	saysActs = "skill that acts is not approved"
	saysHeld = "skill approved; people must approve each call"
	saysFree = "skills that act once or may destroy something are called without anybody's approval"
)

// pins are the approved skills of the default tenant by the names of their tools.
func pins(n *Node) map[string]intents.Pin {
	out := map[string]intents.Pin{}
	for _, p := range n.directory.View().Pins("default") {
		out[p.Skill[strings.IndexByte(p.Skill, '.')+1:]] = p
	}
	return out
}

// TestFirstSight: of what a named server shows first, what reads is approved, what
// acts once too, as its calls are held, and what acts again and again is not. The
// next start finds it so.
func TestFirstSight(t *testing.T) {
	s := mcptest.New(t, mcptest.Tool{Name: "feed", ReadOnly: true}, mcptest.Tool{Name: "save", Idempotent: true}, mcptest.Tool{Name: "send"})
	cfg, log := withSkills(t.TempDir(), s)
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t, n)(); err != nil {
		t.Fatal(err)
	}
	effects := map[string]catalog.Effect{}
	for name, p := range pins(n) {
		effects[name] = catalog.Effect(p.Effect)
	}
	if d := cmp.Diff(map[string]catalog.Effect{"feed": catalog.Pure, "send": catalog.Once}, effects); d != "" {
		t.Errorf("effects (-want +got):\n%s", d)
	}
	if log.count(saysActs) != 1 || log.count(saysHeld) != 1 || log.count(saysFree) != 0 {
		t.Error("the operator was not told what is approved and what is not")
	}
	if got := string(n.directory.View().TenantData("default")["approval"]); got != `{"once":true}` {
		t.Errorf("approval is %s", got)
	}
	want := slices.Concat(firstRecords, slices.Repeat([]string{"intent skill.approve", "outcome OK"}, 2))
	if d := cmp.Diff(want, shortAll(t, all(t, n))); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, records := once(t, cfg); len(records) != len(want) {
		t.Errorf("a second start recorded %v", shortAll(t, records[len(want):]))
	}
}

// TestNewSkillServerDown: a server that does not answer stops nothing. It is
// said, and its skills come in when it is well.
func TestNewSkillServerDown(t *testing.T) {
	s, other := mcptest.New(t, mcptest.Tool{Name: "feed", ReadOnly: true}), mcptest.New(t, mcptest.Tool{Name: "rank", ReadOnly: true})
	s.Stop()
	cfg, log := withSkills(t.TempDir(), s)
	cfg.Skills = append(cfg.Skills, "trust=true -- "+other.URL())
	n := open(t, cfg)
	run(t, n)
	if log.count(saysDown) != 1 || len(pins(n)) != 1 {
		t.Errorf("told %d times, approved %v", log.count(saysDown), pins(n))
	}
	s.Start(s.Addr)
	log.wait(t, "a skill server answers again", 1)
	for deadline := time.Now().Add(patience); len(pins(n)) != 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("approved %v", pins(n))
		}
	}
}

// TestSkillsMisspelt: settings of a server that cannot be read stop the start, and say nothing secret.
func TestSkillsMisspelt(t *testing.T) {
	for _, source := range []string{"ftp://skills", "https://user:secret@skills.example", " ", `npx "unclosed`} {
		cfg := config(t.TempDir())
		cfg.Skills = []string{source}
		if n, err := Open(t.Context(), cfg); n != nil || err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error = %v", source, err)
		}
	}
}

// TestSameServerTwice: two entries that nothing tells apart are refused.
func TestSameServerTwice(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Skills = []string{"name=a -- http://127.0.0.1:1/mcp", "name=b -- http://127.0.0.1:1/mcp", "http://127.0.0.1:1/mcp", "http://127.0.0.1:1/mcp?x"}
	if n, err := Open(t.Context(), cfg); n != nil || err == nil || !strings.Contains(err.Error(), "name=") {
		t.Errorf("error = %v, which must say what to do", err)
	}
}

// TestSkillServerNames: one name for two servers is refused, wherever they are configured.
func TestSkillServerNames(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.SkillServers = []mcp.Source{{URL: "http://127.0.0.1:1/mcp", Settings: mcp.Settings{Name: "crm"}}}
	cfg.Skills = []string{"name=crm -- http://127.0.0.1:2/mcp"}
	if n, err := Open(t.Context(), cfg); n != nil || err == nil || !strings.Contains(err.Error(), "give each server a name of its own") {
		t.Errorf("error = %v", err)
	}
}

// TestUnmatchedNames: names in the data of a tenant, in the settings and in policies that match nothing are
// warned of at the start, once; globs match.
func TestUnmatchedNames(t *testing.T) {
	s := mcptest.New(t, mcptest.Tool{Name: "delete_note", ReadOnly: true})
	cfg, log := withSkills(t.TempDir(), s)
	cfg.Skills[0] = "name=memory tenant=default tenant=nobody " + cfg.Skills[0]
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	if err := n.operator(t.Context(), "admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"approver"}}}); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"approval": `{"skills":["memory.delete_*","delete_*","memroy.delete_*"]}`, "skills_allow": `["*","memory.read_*"]`,
	} {
		if err := n.operator(t.Context(), "admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: key, Value: []byte(value)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.operator(t.Context(), "admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
		ID: "laptop", Hash: intents.Digest([]byte("k")), UserID: "ana", MaxRoles: []string{"user"}, Tools: []string{"memory.*", "delete_note"},
		Rename: map[string]string{"memory.lost_note": "lost", "memory.delete_note": "drop"}, Group: map[string]string{"memroy.*": "notes"},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stop(), n.Close()); err != nil {
		t.Fatal(err)
	}
	rules := t.TempDir()
	if err := os.WriteFile(filepath.Join(rules, "x.rego"), []byte(`package writ.ext.names

# METADATA
# title: names
# description: names
# custom:
#   id: ext.names
deny contains {"id": "ext.names", "reason": "no"} if {
	input.intent.type in {"skill.call"}
	input.intent.args.skill in {"memory.delete_note", "delete_note"}
	"approver" in input.actor.roles
	"aprover" in input.actor.roles
	input.actor.tenant == "acme"
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Policy.Extensions = []policies.Extension{{Name: "names", Dir: rules}}
	before := log.count(saysUnmatched)
	if n, err = Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	stop = run(t, n)
	if got := log.count(saysUnmatched) - before; before != 1 || got != 6+3 {
		t.Errorf("the operator was told of %d names at first, and of %d", before, got)
	}
	if err := errors.Join(stop(), n.Close()); err != nil {
		t.Fatal(err)
	}
	// While another server is down, the names that may be of it are not judged: two have no server.
	before = log.count(saysUnmatched)
	cfg.Skills = append(cfg.Skills, "name=down -- http://127.0.0.1:1/")
	run(t, open(t, cfg))
	if got := log.count(saysUnmatched) - before; got != 5+2 {
		t.Errorf("while a server is down the operator was told of %d names", got)
	}
}

// TestUnmatchedInAgents: a tool of a skill server that is not there is warned of when agents and
// workflows are put in force, and where there is no skill server at all.
func TestUnmatchedInAgents(t *testing.T) {
	s := mcptest.New(t, mcptest.Tool{Name: "read_note", ReadOnly: true})
	for name, servers := range map[string][]string{"a server": {"name=memory -- " + s.URL()}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(tools string) {
				t.Helper()
				must(t, os.WriteFile(filepath.Join(dir, "agents", "shop.yaml"), []byte("name: shop\ndescription: Sells.\ntools: ["+tools+"]\n"), 0o600))
			}
			must(t, errors.Join(os.Mkdir(filepath.Join(dir, "agents"), 0o700), os.Mkdir(filepath.Join(dir, "workflows"), 0o700)))
			must(t, os.WriteFile(filepath.Join(dir, "workflows", "w.yaml"), []byte("workflow_id: w\nversion: \"1\"\ndescription: d\nnodes:\n  - {id: a, type: function, fn: memory.lost_note}\n  - {id: b, type: function, fn: read_note}\n"), 0o600))
			const known = `{server: memory, name: read_note}, {server: "memory"}, {server: "*"}, {server: nowhere}`
			write(known)
			cfg, log := config(t.TempDir()), newMessages()
			cfg.Log, cfg.Agents, cfg.Skills, cfg.SkillServers = log.logger(), dir, servers, nil
			run(t, open(t, cfg))
			before := map[string]int{"a server": 2, "none": 5}[name]
			log.wait(t, saysUnmatched, before)
			write(known + ", {server: memory, name: lost_notes}")
			log.wait(t, saysUnmatched, before+1)
			if got := log.count(saysUnmatched); got != before+1 {
				t.Errorf("the operator was told of %d names", got)
			}
		})
	}
}

const saysUnmatched = "a name in the settings matches nothing, and has no effect: correct it or leave it out"
