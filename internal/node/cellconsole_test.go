package node

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/cell"
	"aob.dev/writ/executors"
	"aob.dev/writ/gateway"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/monitor"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

// acme is the vendor's executor of these tests; its rows are those of the program's tests.
const (
	acme        = "x-acme"
	acmeCatalog = "../../cmd/writ/testdata/acme/catalog"
)

// outside: an executor of somebody else, with the key that writ admin cell accounts made, carries its
// intents out.
func (c *testCell) outside(gateway string) {
	c.Helper()
	seed, err := os.ReadFile(filepath.Join(c.seeds, acme+".seed"))
	must(c.T, err)
	conn, err := bus.Connect(c.Context(), bus.Options{URL: c.url, User: acme, Seed: strings.TrimSpace(string(seed)), Instance: "one"})
	must(c.T, err)
	keys, err := cell.OpenPublished([]string{cell.Keys(c.dir, cell.RoleExecutors)})
	must(c.T, err)
	ctx, stop := context.WithCancel(c.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- executors.Serve(ctx, executors.Config{Bus: conn, Name: acme, Version: "1.0.0", RouterKeys: keys, Origin: keys.Origin(), Now: config("").Now, Ready: ready}, map[string]executors.Handler{
			"x.acme.echo": func(_ context.Context, o *executors.Intent) (*executors.Result, error) {
				return &executors.Result{Value: o.Args}, nil
			},
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		c.Fatal(err)
	}
	c.put(gateway, catalog.AdminPut{Tenant: storage.SystemTenant, Role: &catalog.RoleData{Role: "acme", Capabilities: []string{"x.acme:echo"}}})
	c.put(gateway, catalog.AdminPut{Tenant: storage.SystemTenant, User: &catalog.User{UserID: "local", Roles: []string{"admin", "acme"}}})
	var a intents.Answer
	intent := c.sign("operator", intents.RoleOperator, "x.acme.echo", map[string]string{"text": "hello"})
	if c.call("", http.MethodPost, gateway+"/v1/intents", intent, &a); a.Code != intents.OK || string(a.Outcome.Result) != `{"text":"hello"}` {
		c.Errorf("%+v", a)
	}
	within, cancel := context.WithTimeout(c.Context(), time.Second)
	defer cancel()
	if reply, err := conn.Request(within, bus.Intents, intent); err == nil {
		c.Errorf("an executor of somebody else signs: %s", reply)
	}
	stop()
	must(c.T, <-ended)
	conn.Close()
}

// visitor is somebody at the console of a gateway.
type visitor struct {
	*testCell
	web *http.Client
	url string
}

var formToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func (v visitor) send(method, path string, form url.Values) (status int, text string) {
	v.Helper()
	req, err := http.NewRequestWithContext(v.Context(), method, v.url+path, strings.NewReader(form.Encode()))
	must(v.T, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "text/html")
	res, err := v.web.Do(req)
	must(v.T, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	must(v.T, err)
	return res.StatusCode, html.UnescapeString(string(raw))
}

// shows opens a page that must have texts.
func (v visitor) shows(path string, texts ...string) (text string) {
	v.Helper()
	status, text := v.send(http.MethodGet, path, nil)
	for _, want := range texts {
		if status != http.StatusOK || !strings.Contains(text, want) {
			v.Errorf("%s: HTTP %d, without %q:\n%s", path, status, want, text)
		}
	}
	return text
}

// console: somebody opens every page at the gateway, and what only a process has that follows
// the record comes from the router.
func (c *testCell) console(key, gateway, plan string) {
	c.Helper()
	jar, err := cookiejar.New(nil)
	must(c.T, err)
	v := visitor{c, &http.Client{Jar: jar}, gateway}
	if status, text := v.send(http.MethodPost, "/console/login", url.Values{"key": {key}}); status != http.StatusOK {
		c.Fatalf("log in: HTTP %d\n%s", status, text)
	}
	id := c.intentsOf(key, gateway, plan, "skill.call")[0]
	v.shows("/console/now", "skill.call")
	v.shows("/console/plans", plan)
	v.shows("/console/plans/"+plan, "strongest earthquakes")
	v.shows("/console/intents/"+id, "skill.call", `"skill": "quakes.`)
	v.shows("/console/intents/" + id + "/proof")
	v.shows("/console/approvals")
	v.shows("/console/agents", "desk", "quakes.earthquake_feed", "approved")
	v.shows("/console/skills/quakes.earthquake_feed", "Approved")
	v.shows("/console/record", "Checkpoint")
	v.shows("/console/policies/explain/"+id, "allow")
	counted, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	_ = clock.Every(counted, 100*time.Millisecond, func() bool {
		_, text := v.send(http.MethodGet, "/console/health", nil)
		return strings.Contains(text, "earthquake_feed")
	}) // they are counted beside
	v.shows("/console/health", "journal", "documents", "The four layers", "plans that ended", "earthquake_feed: calls that failed")
	v.shows("/console/health?usage=1", "What models cost", "Calls of skills")
	page := v.shows("/console/policies", "authz/ttl.rego")
	m := formToken.FindStringSubmatch(page)
	if m == nil {
		c.Fatalf("no form:\n%s", page)
	}
	form := url.Values{"csrf": {m[1]}}
	if status, text := v.send(http.MethodPost, "/console/record/bundle", form); status != http.StatusNotFound || !strings.Contains(text, "writ admin cell copy cell copy") {
		c.Errorf("bundle: HTTP %d\n%s", status, text)
	}
}

// intentsOf a plan.
func (c *testCell) intentsOf(key, gateway, plan, typ string) (ids []string) {
	c.Helper()
	var list struct {
		Intents []struct {
			ID string `json:"intent_id"`
		} `json:"intents"`
	}
	if c.call(key, http.MethodGet, gateway+"/v1/intents?plan_id="+plan+"&type="+typ, nil, &list); len(list.Intents) == 0 {
		c.Fatalf("plan %s has no %s", plan, typ)
	}
	for _, o := range list.Intents {
		ids = append(ids, o.ID)
	}
	return ids
}

// consoleAPIRights: what a router shows at its own address goes by the grant, whoever asks.
func (c *testCell) consoleAPIRights(key, gateway, router, plan string) {
	c.Helper()
	c.put(gateway, catalog.AdminPut{New: &catalog.Tenant{ID: "other"}})
	people := map[string]string{} // grants by name
	for name, p := range map[string]struct {
		tenant string
		roles  []string
	}{"una": {"default", []string{"user"}}, "audrey": {"default", []string{"auditor"}}, "otto": {"other", []string{"user", "auditor"}}} {
		own := "writ_" + strings.Repeat(name, 8)
		c.put(gateway, catalog.AdminPut{Tenant: p.tenant, APIKey: &catalog.APIKey{ID: "k-" + name, Hash: intents.Digest([]byte(own)), UserID: name, MaxRoles: p.roles}})
		people[name] = c.grant(own, gateway)
	}
	people["local"] = c.grant(key, gateway)
	id := c.intentsOf(key, gateway, plan, "skill.call")[0]
	at := router + strings.TrimSuffix(consoleapi.Path, "/")
	get := func(name, path string) int {
		c.Helper()
		req, err := http.NewRequestWithContext(c.Context(), http.MethodGet, at+path, nil)
		must(c.T, err)
		if name != "" {
			req.Header.Set("Authorization", "Bearer "+people[name])
		}
		res, err := http.DefaultClient.Do(req)
		must(c.T, err)
		must(c.T, res.Body.Close())
		return res.StatusCode
	}
	const ok, unknown, forbidden, none, unaudited = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusPreconditionRequired
	for path, want := range map[string]map[string]int{
		"/intents/" + id: {"": unknown, "una": none, "otto": none, "audrey": unaudited, "local": ok},
		"/explain/" + id: {"": unknown, "una": forbidden, "otto": none, "audrey": unaudited},
		"/skills":        {"": unknown, "una": ok},
		"/agents":        {"": unknown, "una": ok},
		"/policy":        {"": unknown, "una": forbidden, "audrey": ok},
		"/bundle":        {"": unknown, "una": forbidden, "audrey": unaudited},
		"/health":        {"": unknown, "una": ok},
	} {
		for name, status := range want {
			if got := get(name, path); got != status {
				c.Errorf("%s for %q: HTTP %d, want %d", path, name, got, status)
			}
		}
	}
	if status := c.call(key, http.MethodGet, gateway+"/console-api/skills", nil, nil); status != http.StatusNotFound {
		c.Errorf("the office is open at the gateway: HTTP %d", status)
	}
	if status := c.call(key, http.MethodGet, at+"/skills", nil, nil); status != unknown {
		c.Errorf("a router takes an API key: HTTP %d", status)
	}
}

// put changes the directory as the operator.
func (c *testCell) put(gateway string, args catalog.AdminPut) {
	c.Helper()
	var a intents.Answer
	if c.call("", http.MethodPost, gateway+"/v1/intents", c.sign("operator", intents.RoleOperator, "admin.put", args), &a); a.Code != intents.OK {
		c.Fatalf("%+v", a)
	}
}

// grant of an API key's user.
func (c *testCell) grant(key, gateway string) string {
	c.Helper()
	var g struct {
		Grant string `json:"read_grant"`
	}
	if status := c.call(key, http.MethodPost, gateway+"/v1/grants", nil, &g); status != http.StatusCreated {
		c.Fatalf("a grant: HTTP %d", status)
	}
	return g.Grant
}

// registered puts an agent and a skill's document in force, which allows one call a minute. The
// gateway shows both.
func (c *testCell) registered(key, url string) {
	c.Helper()
	r, err := agents.Read(fstest.MapFS{
		"agents/desk.yaml": {Data: []byte("name: desk\ndescription: d\n")},
		"skills/quakes/skill.md": {Data: []byte("# Quakes\n## Capability\nReads.\n## MCP Tools\n| Tool | Input Schema | Output | Rate Limit |\n|-|-|-|-|\n| quakes.earthquake_feed | {} | list | 1 |\n" +
			"## Usage Examples\nx\n## Error Handling\nx\n## Security Considerations\nx\n")},
	}, os.Getenv)
	must(c.T, err)
	push := catalog.RegistryPush{Revision: 1, Digest: r.Digest()}
	push.Bundle, err = r.Pack()
	must(c.T, err)
	var a intents.Answer
	if c.call("", http.MethodPost, url+"/v1/intents", c.sign("operator", intents.RoleOperator, "registry.push", push), &a); a.Code != intents.OK {
		c.Fatalf("%+v", a)
	}
	var documents []struct {
		ID      string `json:"id"`
		Content string `json:"content"`
	}
	if status := c.call(key, http.MethodGet, url+"/skills/?id=quakes", nil, &documents); status != http.StatusOK || len(documents) != 1 || !strings.HasPrefix(documents[0].Content, "# Quakes") {
		c.Errorf("documents of skills: HTTP %d %+v", status, documents)
	}
	var d gateway.Deep
	c.call(key, http.MethodGet, url+"/health/deep", nil, &d)
	if d.Status != gateway.Up || !slices.ContainsFunc(d.Agents, func(a gateway.AgentHealth) bool { return a.Name == "desk" && a.Kind == "local" }) {
		c.Errorf("deep health %+v", d)
	}
}

// rated: the second call of a minute is one too many.
func (c *testCell) rated(key, gateway string) {
	c.Helper()
	var turn struct {
		PlanID string `json:"plan_id"`
	}
	c.call(key, http.MethodPost, gateway+"/agent/run", map[string]string{"message": "Which ten places had the strongest earthquakes, and how strong were they?"}, &turn)
	for _, id := range c.intentsOf(key, gateway, turn.PlanID, "skill.call") {
		var p struct {
			Outcome *intents.Outcome `json:"outcome"`
		}
		if c.call(key, http.MethodGet, gateway+"/v1/intents/"+id, nil, &p); p.Outcome != nil && p.Outcome.Code == intents.RateLimited {
			return
		}
	}
	c.Error("the rate of the document does not count")
}

// watched: the monitor has what routers and recorders say of themselves.
func (c *testCell) watched(n, recorder *Node) {
	c.Helper()
	must(c.T, n.monitor.Look(c.Context()))
	p := n.monitor.Last().Process
	var s monitor.ProcessStatus
	c.call("", http.MethodGet, recorder.url()+monitor.ProcessStatusPath, nil, &s)
	if p.HoldsLate != 0 || len(p.Conditions) != 0 || s.Leaves == 0 {
		c.Errorf("%+v, %d leaves", p, s.Leaves)
	}
}
