package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/bus"
	"aob.dev/writ/cell"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/policies"
	"aob.dev/writ/upkeep"
)

// testCell is a cell whose processes are nodes of a test, on a nats-server that knows nothing of
// writ but the file that writ admin cell accounts makes.
type testCell struct {
	*testing.T
	dir, seeds, url string
	shared          string // documents and blobs
}

// second is what a role connects as besides.
var second = map[string]string{"gateway": "frames", "recorder": "teller"}

// each is every role in a process of its own, but what a router and a recorder share.
func newCell(t *testing.T, instances ...string) *testCell {
	t.Helper()
	c := &testCell{T: t, dir: filepath.Join(t.TempDir(), "cell"), seeds: filepath.Join(t.TempDir(), "seeds"), shared: t.TempDir()}
	engine, err := policies.Feed{}.Engine()
	must(t, err)
	types, err := catalog.Open(acmeCatalog)
	must(t, err)
	origin, err := cell.Create(c.dir, engine, types)
	must(t, err)
	if !strings.HasPrefix(origin, "writ/") {
		t.Fatalf("origin %q", origin)
	}
	var processes []string
	for _, role := range Roles() {
		name := strings.TrimPrefix(role, executorRole)
		for _, i := range instances {
			if role != cell.RoleMonitor {
				processes = append(processes, name+":"+i)
			}
			if also := second[role]; also != "" {
				processes = append(processes, also+":"+i)
			}
		}
	}
	processes = append(processes, "hearer:default_crm")
	text, _, err := cell.Accounts(processes, map[string][]string{acme: {"x.acme.echo"}}, c.seeds)
	must(t, err)
	c.url = natsWith(t, text)
	must(t, os.MkdirAll(filepath.Join(c.shared, "blobs"), 0o700))
	must(t, os.WriteFile(filepath.Join(c.shared, "documents.db"), nil, 0o600))
	return c
}

// natsWith starts a nats-server by a configuration that includes the one of writ.
func natsWith(t *testing.T, text []byte) (url string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "writ.conf"), text, 0o600))
	file := filepath.Join(dir, "nats.conf")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "listen: 127.0.0.1:-1\njetstream { store_dir: %q, sync_interval: always }\ninclude ./writ.conf\n", filepath.Join(dir, "js")), 0o600))
	return natstest.Standalone(t, file).ClientURL()
}

// config of a process of some roles: their keys and the keys of its connections alone.
func (c *testCell) config(instance string, roles ...string) Config {
	c.Helper()
	cfg := config(filepath.Join(c.TempDir(), "data"))
	cfg.Model, cfg.Catalog = offline.Model{}, acmeCatalog
	cfg.Log = slog.New(slog.NewTextHandler(c.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})).With(slog.String("process", strings.Join(roles, " ")+" "+instance))
	must(c.T, os.MkdirAll(cfg.Dir, 0o700))
	for _, name := range []string{"documents.db", "blobs"} { // one store for all
		must(c.T, os.Symlink(filepath.Join(c.shared, name), filepath.Join(cfg.Dir, name)))
	}
	seeds := c.TempDir()
	var dirs []string
	for _, role := range roles {
		name, executor := strings.CutPrefix(role, executorRole)
		found, err := filepath.Glob(filepath.Join(c.seeds, name+"_"+instance+"_*.seed"))
		must(c.T, err)
		if also := second[role]; also != "" {
			more, err := filepath.Glob(filepath.Join(c.seeds, also+"_"+instance+"_*.seed"))
			must(c.T, err)
			found = append(found, more...)
		}
		for _, file := range found {
			raw, err := os.ReadFile(file)
			must(c.T, err)
			must(c.T, os.WriteFile(filepath.Join(seeds, filepath.Base(file)), raw, 0o600))
		}
		if executor {
			role = cell.RoleExecutors
		}
		dirs = append(dirs, cell.Keys(c.dir, role))
	}
	cfg.Cluster = &Cluster{Roles: roles, Bus: cell.Bus{URLs: []string{c.url}, Seeds: seeds, Instance: instance}, Keys: dirs}
	return cfg
}

// process runs a process until the test ends.
func (c *testCell) process(cfg Config) *Node {
	c.Helper()
	n, stop, err := Start(context.WithoutCancel(c.Context()), cfg)
	if err != nil {
		c.Fatalf("%v: %v", cfg.Cluster.Roles, err)
	}
	c.Cleanup(func() {
		if err := stop(); err != nil {
			c.Errorf("%v: %v", cfg.Cluster.Roles, err)
		}
	})
	return n
}

func (n *Node) url() string { return "http://" + n.Addr().String() }

// call an interface with an API key, and read what it says.
func (c *testCell) call(key, method, url string, body, out any) int {
	c.Helper()
	raw, isRaw := body.([]byte)
	if !isRaw && body != nil {
		var err error
		raw, err = json.Marshal(body)
		must(c.T, err)
	}
	req, err := http.NewRequestWithContext(c.Context(), method, url, bytes.NewReader(raw))
	must(c.T, err)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	must(c.T, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(c.T, err)
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			c.Fatalf("%s %s: HTTP %d: %s", method, url, res.StatusCode, text)
		}
	}
	return res.StatusCode
}

// sign an intent with a key of the cell's directories.
func (c *testCell) sign(role string, signs intents.Role, typ string, args any) []byte {
	c.Helper()
	held, err := keydir.LoadSome(cell.Keys(c.dir, role))
	must(c.T, err)
	of := held.ByRole(signs)
	if len(of) != 1 {
		c.Fatalf("%s has %d keys of %s", role, len(of), signs)
	}
	p, err := cell.OpenPublished([]string{cell.Keys(c.dir, role)})
	must(c.T, err)
	raw, err := keydir.Operator{Key: of[0], Subject: "local", Tenant: keydir.LocalTenant, Origin: p.Origin()}.Sign(typ, args, time.Now())
	must(c.T, err)
	return raw
}

// begin begins the log of the cell.
func (c *testCell) begin(core Config) (key string) {
	c.Helper()
	key, err := BeginCell(c.Context(), core, c.dir)
	must(c.T, err)
	if err := keydir.CheckAPIKey(key); err != nil {
		c.Fatalf("API key %q: %v", key, err)
	}
	return key
}

// TestCell: every role in a process of its own, with its own keys alone, answers a question;
// and a key of one of them is of no use for another.
func TestCell(t *testing.T) {
	c := newCell(t, "a")
	router := c.config("a", "router")
	if _, _, err := Start(t.Context(), router); !errors.Is(err, errNotBegun) {
		t.Fatalf("a cell without a log starts: %v", err)
	}
	key := c.begin(router)
	if again, err := BeginCell(t.Context(), router, c.dir); err != nil || again != "" {
		t.Fatalf("again: %q, %v", again, err)
	}
	feed, err := quakes.Serve(t.Context())
	must(t, err)
	processes := map[string]*Node{"recorder": c.process(c.config("a", "recorder"))}
	recorders := []string{"http://127.0.0.1:1", processes["recorder"].url()}
	router.Cluster.Recorders = recorders
	processes["router"] = c.process(router)
	for _, role := range Roles() {
		if processes[role] != nil {
			continue
		}
		cfg := c.config("a", role)
		switch role {
		case "executor:skills":
			cfg.Skills = []string{"name=quakes -- " + feed}
		case "gateway", cell.RoleMonitor:
			cfg.Cluster.Routers, cfg.Cluster.Recorders = []string{"http://127.0.0.1:1", processes["router"].url()}, recorders
		}
		processes[role] = c.process(cfg)
	}
	for role, n := range processes {
		for _, probe := range []string{"/livez", "/readyz"} {
			if status := c.call("", http.MethodGet, n.url()+probe, nil, nil); status != http.StatusOK {
				t.Errorf("%s of %s: HTTP %d", probe, role, status)
			}
		}
	}

	if g := processes["gateway"]; g.documents != nil || g.journal != nil || g.registry != nil || g.router != nil {
		t.Error("the gateway's process has a store of documents, the journal, skills or a router")
	}
	gateway := processes["gateway"].url()
	c.approve(processes["executor:skills"], gateway)
	c.registered(key, gateway)
	plan := c.ask(key, gateway)
	c.reads(key, gateway, plan)
	c.hears(plan)
	c.stolen(gateway)
	c.console(key, gateway, plan)
	c.consoleAPIRights(key, gateway, processes["router"].url(), plan)
	c.rated(key, gateway)
	c.outside(gateway)
	c.watched(processes[cell.RoleMonitor], processes["recorder"])
	c.copied(router, func() {
		var a intents.Answer
		args := catalog.AdminPut{New: &catalog.Tenant{ID: "later"}}
		if c.call("", http.MethodPost, gateway+"/v1/intents", c.sign("operator", intents.RoleOperator, "admin.put", args), &a); a.Code != intents.OK && a.Code != intents.MalformedArgs {
			t.Fatalf("%+v", a)
		}
	})
	held := c.hold(key, gateway, "quakes.earthquake_feed", "Which ten places had the strongest earthquakes?")
	c.snapshots(processes["router"], processes["recorder"], "earthquakes", func() {
		if status := c.call(key, http.MethodDelete, gateway+"/agent/plans/"+held, nil, nil); status != http.StatusOK {
			t.Errorf("cancel: HTTP %d", status)
		}
	})
	s, err := cell.StatusOf(t.Context(), router.Cluster.Bus, router.Cluster.Keys)
	must(t, err)
	if s.Recorder != "a" || s.Router != "a" || s.Reached == 0 || s.Origin != processes["gateway"].Origin() {
		t.Errorf("status %+v", s)
	}
}

// copied: a copy of the cell's record is one that auditors can check, and a later copy goes on
// behind it.
func (c *testCell) copied(cfg Config, put func()) {
	c.Helper()
	to, cluster := filepath.Join(c.TempDir(), "copy"), *cfg.Cluster
	cluster.Bus.Seeds = c.seeds
	cfg.Cluster = &cluster
	must(c.T, os.Mkdir(to, 0o700))
	must(c.T, os.Symlink(filepath.Join(c.shared, "blobs"), filepath.Join(to, "blobs")))
	must(c.T, os.Rename(filepath.Join(c.dir, "root"), filepath.Join(c.TempDir(), "offline"))) // as operators are told
	before := int64(0)
	for range 2 {
		records, err := cell.Copy{Bus: cfg.Cluster.Bus, Blobs: cfg.Blobs, Log: cfg.Log}.Make(c.Context(), c.dir, to)
		must(c.T, err)
		h, err := upkeep.Fsck(c.Context(), to, func(int64, int64) {})
		must(c.T, err)
		if !h.OK || h.Records != records || records <= before {
			c.Errorf("%d records, %d before: %+v", records, before, h)
		}
		before = records
		put()
	}
}

// approve the tools of a skill server, as an operator does.
func (c *testCell) approve(skilled *Node, gateway string) {
	c.Helper()
	found, errs := skilled.registry.Skills(c.Context(), intents.Principal{})
	if len(found) == 0 {
		c.Fatalf("no skills: %v", errs)
	}
	for _, s := range found {
		var a intents.Answer
		args := catalog.SkillApprove{Tenant: "default", Skill: s.ID(), Digest: s.Digest(), Effect: catalog.Pure, InputSchema: approval.PinnedSchema(s.InputSchema)}
		if c.call("", http.MethodPost, gateway+"/v1/intents", c.sign("operator", intents.RoleOperator, "skill.approve", args), &a); a.Code != intents.OK {
			c.Fatalf("%s: %+v", s.ID(), a)
		}
	}
}

// ask a question that needs a skill, a script and an answer.
func (c *testCell) ask(key, gateway string) (plan string) {
	c.Helper()
	var turn struct {
		Status   string `json:"status"`
		PlanID   string `json:"plan_id"`
		Response string `json:"response"`
	}
	if status := c.call(key, http.MethodPost, gateway+"/agent/run", map[string]string{"message": "Which ten places had the strongest earthquakes, and how strong were they?"}, &turn); status != http.StatusOK || turn.Status != "complete" {
		c.Fatalf("HTTP %d %+v", status, turn)
	}
	return turn.PlanID
}

// reads of the record go through the gateway to the router and the recorder.
func (c *testCell) reads(key, gateway, plan string) {
	c.Helper()
	var list struct {
		Intents []struct {
			ID   string `json:"intent_id"`
			Type string `json:"type"`
		} `json:"intents"`
	}
	if status := c.call(key, http.MethodGet, gateway+"/v1/intents?plan_id="+plan, nil, &list); status != http.StatusOK || len(list.Intents) < 5 {
		c.Fatalf("HTTP %d, %d intents", status, len(list.Intents))
	}
	var a intents.Answer
	if status := c.call(key, http.MethodGet, gateway+"/v1/intents/"+list.Intents[0].ID, nil, &a); status != http.StatusOK || a.Receipt == "" {
		c.Errorf("HTTP %d, receipt %q", status, a.Receipt)
	}
	var proof struct {
		Inclusion struct {
			Note string `json:"checkpoint"`
		} `json:"inclusion"`
	}
	err := clock.Every(c.within(), 100*time.Millisecond, func() bool { // until the next checkpoint
		return c.call(key, http.MethodGet, gateway+"/v1/intents/"+list.Intents[0].ID+"/proof", nil, &proof) == http.StatusOK
	})
	if err != nil || proof.Inclusion.Note == "" {
		c.Errorf("proof: %v", err)
	}
	if status := c.call("", http.MethodGet, gateway+"/ledger/checkpoint", nil, nil); status != http.StatusOK {
		c.Errorf("checkpoint: HTTP %d", status)
	}
	if status := c.call(key, http.MethodGet, gateway+"/agent/plans/"+plan+"/trace", nil, nil); status != http.StatusOK {
		c.Errorf("trace: HTTP %d", status)
	}
}

// hears: another system hears of the plan.
func (c *testCell) hears(plan string) {
	c.Helper()
	seed, err := nats.NkeyOptionFromSeed(filepath.Join(c.seeds, "hearer_default_crm_asks.seed"))
	must(c.T, err)
	nc, err := nats.Connect(c.url, seed, nats.CustomInboxPrefix("_INBOX_hearer_default_crm"))
	must(c.T, err)
	defer nc.Close()
	js, err := jetstream.NewWithAPIPrefix(nc, bus.EventsAPI)
	must(c.T, err)
	events, err := js.CreateOrUpdateConsumer(c.Context(), bus.EventsStream, jetstream.ConsumerConfig{Durable: "default_crm", FilterSubject: bus.Events("default")})
	must(c.T, err)
	for ctx := c.within(); ; {
		m, err := events.Next(jetstream.FetchContext(ctx))
		must(c.T, err)
		if text := string(m.Data()); strings.Contains(text, `"plan.complete"`) && strings.Contains(text, plan) {
			return
		}
	}
}

// within is the time for what comes by itself.
func (c *testCell) within() context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	c.Cleanup(cancel)
	return ctx
}

// stolen keys sign what their role may, and connect as it alone.
func (c *testCell) stolen(gateway string) {
	c.Helper()
	var p struct {
		Code intents.Code `json:"code"`
	}
	args := catalog.AdminPut{New: &catalog.Tenant{ID: "mine"}}
	for role, signs := range map[string]intents.Role{"manager": intents.RoleManager, "gateway": intents.RoleGateway, "router": intents.RoleRouter, "recorder": intents.RoleLedger} {
		if c.call("", http.MethodPost, gateway+"/v1/intents", c.sign(role, signs, "admin.put", args), &p); p.Code != intents.GrantInvalid {
			c.Errorf("an intent of the %s's key: %s", role, p.Code)
		}
	}
	for _, role := range Roles() {
		if role == cell.RoleMonitor || role == "recorder" {
			continue
		}
		cfg := c.config("a", "recorder") // with the recorder's directory
		cfg.Cluster.Roles = []string{role}
		if _, _, err := Start(c.Context(), cfg); err == nil {
			c.Errorf("a recorder's directory serves %s", role)
		}
	}
	conn, err := cell.Bus{URLs: []string{c.url}, Seeds: c.seeds, Instance: "a"}.Connect(c.Context(), "recorder")
	must(c.T, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.Context(), time.Second)
	defer cancel()
	if reply, err := conn.Request(ctx, bus.Intents, c.sign("operator", intents.RoleOperator, "admin.put", args)); err == nil {
		c.Errorf("a recorder signs: %s", reply)
	}
}
