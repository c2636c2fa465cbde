package e2e

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
)

// browser is somebody at the console.
type browser struct {
	t   *testing.T
	s   *system
	web *http.Client
}

// page of the console, with a browser's request headers.
type page struct {
	status int
	path   string
	header http.Header
	text   string
}

// at opens the console with a key.
func (s *system) at(who person) *browser {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	b := &browser{s.t, s, &http.Client{Jar: jar}}
	s.t.Cleanup(b.web.CloseIdleConnections)
	if p := b.send("/console/login", url.Values{"key": {who.key}, "user": {who.user}}); p.status != http.StatusOK || p.path != "/console/now" {
		s.t.Fatalf("log in: %d %s\n%s", p.status, p.path, p.text)
	}
	return b
}

func (b *browser) do(method, path string, form url.Values, header http.Header) page {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := b.web.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return page{resp.StatusCode, resp.Request.URL.Path, resp.Header, string(raw)}
}

func (b *browser) open(path string) page { b.t.Helper(); return b.do(http.MethodGet, path, nil, nil) }

func (b *browser) send(path string, form url.Values) page {
	b.t.Helper()
	return b.do(http.MethodPost, path, form, http.Header{"Sec-Fetch-Site": {"same-origin"}})
}

var token = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// csrf is the token of a page's forms.
func (p page) csrf() string {
	m := token.FindStringSubmatch(p.text)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// shows checks that a page is there and has texts.
func (p page) shows(t *testing.T, texts ...string) {
	t.Helper()
	if p.status != http.StatusOK {
		t.Errorf("%s: HTTP %d\n%s", p.path, p.status, p.text)
	}
	for _, text := range texts {
		if !strings.Contains(p.text, html.EscapeString(text)) {
			t.Errorf("%s does not show %q:\n%s", p.path, text, p.text)
		}
	}
}

// consolePages are all that need no id.
var consolePages = []string{"/console/now", "/console/plans", "/console/approvals", "/console/agents", "/console/policies", "/console/record", "/console/health", "/console/stop", "/console/you"}

// TestConsoleApproval: an intent waits, ben sees in the console what exactly will happen and
// approves it there; it is carried out, and a second one is compared with it.
func TestConsoleApproval(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	ben, _, dora := s.holds("outlet_list")
	s.summarize("outlet_list", "List the outlets of the shop.")
	ana := s.as("ana")
	turn := s.hold(ana, openInBerlin)
	id := turn.Approval.IntentID
	b := s.at(ben)
	if seen := b.live(); !seen.Scan() || !strings.Contains(seen.Text(), "began") || !seen.Scan() || !strings.Contains(seen.Text(), `"waiting":1,`) {
		t.Errorf("somebody who sees no intent but what may be decided: %q", seen.Text())
	}
	home := b.open("/console")
	home.shows(t, "(1) Approvals – writ", "may decide", "skill.call", "ana")
	if home.path != "/console/approvals" {
		t.Errorf("somebody who may decide begins at %s", home.path)
	}
	p := b.open("/console/approvals/" + id)
	p.shows(t, "List the outlets of the shop.", "Asked by", "outlet_list", "Request changes", "writ.skill.approval")
	form := url.Values{"decision": {"approve"}, "csrf": {p.csrf()}}
	if p := b.send("/console/approvals/"+id, url.Values{"decision": {"approve"}}); p.status != http.StatusForbidden || !strings.Contains(p.text, "What stands:") {
		t.Errorf("without the token: %d", p.status)
	}
	if p := b.do(http.MethodPost, "/console/approvals/"+id, form, http.Header{"Sec-Fetch-Site": {"cross-site"}}); p.status != http.StatusForbidden {
		t.Errorf("from another site: %d", p.status)
	}
	if p := b.send("/console/approvals/"+id, url.Values{"decision": {"reject"}, "csrf": form["csrf"]}); p.status != intents.SchemaInvalid.Info().Status {
		t.Errorf("no reason: %d\n%s", p.status, p.text)
	} else if !strings.Contains(p.text, "Say why") || !strings.Contains(p.text, string(intents.SchemaInvalid)) {
		t.Errorf("an error that does not help:\n%s", p.text)
	}
	d := s.at(dora)
	other := d.open("/console/approvals/" + id)
	if other.status != http.StatusNotFound {
		t.Errorf("no approver sees it: %d", other.status)
	}
	if shop.count("outlet_list") != 0 {
		t.Fatal("carried out before")
	}
	if said := b.send("/console/approvals/"+id, form); !strings.Contains(said.text, "You said approve") || !strings.Contains(said.text, "It was carried out.") && !strings.Contains(said.text, "has not ended yet") {
		t.Errorf("after the approval:\n%s", said.text)
	}
	if last, _ := s.streamEnd(ana, turn.PlanID, ""); last != "done" && last != "held" {
		t.Errorf("the stream ends with %s", last)
	}
	a := s.at(ana)
	plan := a.open("/console/plans/" + turn.PlanID)
	plan.shows(t, turn.PlanID, openInBerlin, "outlet_list", "Proofs of this page")
	for text, path := range map[string]string{
		turn.PlanID: "/console/plans/" + turn.PlanID, id: "/console/intents/" + id, "skills-1.outlet_list": "/console/skills/skills-1.outlet_list",
		"skill.call": "/console/record", "policy_denied": "/console/record", "ben": "/console/record",
	} {
		if p := a.open("/console/find?q=" + url.QueryEscape(text)); p.status != http.StatusOK || p.path != path {
			t.Errorf("%s is found at %s: HTTP %d", text, p.path, p.status)
		}
	}
	if p := a.open("/console/find?q=no+such"); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.text, "Enter the id of an intent") {
		t.Errorf("what nothing is called: HTTP %d\n%s", p.status, p.text)
	}
	for _, other := range []*browser{b, d} {
		if p := other.open("/console/plans/" + turn.PlanID); p.status != http.StatusNotFound {
			t.Errorf("another user's plan: %d", p.status)
		}
	}
	page := a.open("/console/intents/" + id)
	page.shows(t, id, "Asked by", openInBerlin, "writ.skill.approval", "the executor skills", "Proof")
	if !strings.Contains(page.text, "Decided by</h2><p><strong>ben</strong>") {
		t.Errorf("nobody has approved it:\n%s", page.text)
	}
	for _, path := range consolePages {
		a.open(path).shows(t)
	}
	narrow := "/console/record?skill=skills-1.outlet_list&verdict=hold"
	found := a.open(narrow)
	found.shows(t, id, "Found: 1.", "skills-1.outlet_list", "7 days")
	if links := regexp.MustCompile(`href="(\?[^"]*)" aria-current="true"`).FindAllStringSubmatch(found.text, -1); len(links) != 2 {
		t.Errorf("what narrows the search: %q", links)
	} else if p := a.open("/console/record" + html.UnescapeString(links[0][1])); !strings.Contains(p.text, id) {
		t.Errorf("%s does not find it:\n%s", links[0][1], p.text)
	}
	lines := a.open(strings.Replace(narrow, "record?", "record/intents?", 1))
	var line catalog.IntentEntry
	if err := json.Unmarshal([]byte(lines.text), &line); err != nil || line.IntentID != id || line.Skill != "skills-1.outlet_list" || !strings.Contains(lines.header.Get("Content-Disposition"), "default-intents.jsonl") {
		t.Errorf("export: %v: %s", err, lines.text)
	}
	a.open("/console/record?since="+time.Now().UTC().Add(time.Hour).Format(time.RFC3339)).shows(t, "No intent fits")
}

// TestConsoleSession: the cookie is valid for the console alone, and ends with its key.
func TestConsoleSession(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	ben := s.addPerson("default", "ben", "user", "auditor")
	b := s.at(ben)
	for _, path := range consolePages {
		p := b.open(path)
		p.shows(t, "ben of default")
		if policy := p.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %q", path, policy)
		}
	}
	at, err := url.Parse(s.url + "/console/now")
	if err != nil {
		t.Fatal(err)
	}
	cookies := b.web.Jar.Cookies(at)
	if len(cookies) != 1 {
		t.Fatalf("%v", cookies)
	}
	for _, path := range []string{"/v1/me", "/v1/intents", "/agent/plans", "/agent/approvals", "/v1/policy", "/mcp"} {
		if p := b.do(http.MethodGet, path, nil, http.Header{"Cookie": {cookies[0].String()}, "Authorization": {"Bearer " + cookies[0].Value}, "X-Api-Key": {cookies[0].Value}}); p.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	for range 120 { // more than the API's rate of a user
		if p := b.open("/console/plans"); p.status != http.StatusOK {
			t.Fatalf("%d\n%s", p.status, p.text)
		}
	}
	bundle := b.send("/console/record/bundle", url.Values{"csrf": {b.open("/console/record").csrf()}})
	if inCell() && !strings.Contains(bundle.text, "writ admin cell copy") || !inCell() && (bundle.status != http.StatusOK || !strings.Contains(bundle.header.Get("Content-Disposition"), "default.jsonl") || strings.Count(bundle.text, "\n") < 5) {
		t.Errorf("bundle: %d %d bytes", bundle.status, len(bundle.text))
	}
	user := s.at(s.addPerson("default", "una", "user"))
	for _, path := range []string{"/console/record/bundle"} {
		if p := user.send(path, url.Values{"csrf": {user.open("/console/now").csrf()}, "file": {"x"}}); p.status != http.StatusForbidden {
			t.Errorf("%s without the capability: %d", path, p.status)
		}
	}
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
		ID: "default-ben", Hash: intents.Digest([]byte(ben.key)), UserID: "ben", MaxRoles: []string{"user"}, Revoked: true,
	}})
	deadline := time.Now().Add(time.Minute)
	for b.open("/console/now").path != "/console/login" {
		if time.Now().After(deadline) {
			t.Fatal("the session outlives its key")
		}
	}
}

// TestConsoleSkill: who has admin:skills approves a changed manifest in the console, that version
// and no other, in the own tenant; a gateway does so for nobody of system.
func TestConsoleSkill(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	boss, ben, local := s.addPerson("default", "boss", "user", "admin"), s.addPerson("default", "ben", "user"), s.addPerson("system", "local", "admin")
	name := s.pinAnother("order_list")
	b := s.at(boss)
	b.open("/console/agents").shows(t, name, "has changed: refused until it is approved")
	p := b.open("/console/skills/" + name)
	p.shows(t, "-What it said before.", "Every order of the chain", "What has changed")
	m := regexp.MustCompile(`name="digest" value="([^"]+)"`).FindStringSubmatch(p.text)
	if m == nil {
		t.Fatalf("no form:\n%s", p.text)
	}
	form := url.Values{"csrf": {p.csrf()}, "digest": {intents.Digest(nil)}, "effect": {"pure"}}
	if p := b.send("/console/skills/"+name, form); p.status != intents.StaleWrite.Info().Status {
		t.Errorf("another version than the page showed: %d", p.status)
	}
	form.Set("digest", m[1])
	other := s.at(ben)
	if p := other.send("/console/skills/"+name, url.Values{"csrf": {other.open("/console/now").csrf()}, "digest": {m[1]}, "effect": {"pure"}}); p.status != http.StatusForbidden {
		t.Errorf("without admin:skills: %d", p.status)
	}
	approval := catalog.SkillApprove{Tenant: "default", Skill: name, Digest: m[1], Effect: catalog.Pure}
	if _, p := s.call(local, http.MethodPost, "/v1/skills", approval, nil); p.Code != intents.MalformedArgs {
		t.Errorf("an operator of system, signed by the gateway: %+v", p)
	}
	b.send("/console/skills/"+name, form).shows(t, "You approved "+name)
	if p := b.open("/console/skills/" + name); strings.Contains(p.text, "Approve this version") {
		t.Errorf("it still waits:\n%s", p.text)
	}
}

// TestConsoleShadow: people read in the console what a shadow tree would decide otherwise, of their own
// tenant; it decides nothing, and the record holds good.
func TestConsoleShadow(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	s.operate("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}})
	ben, una := s.addPerson("default", "ben", "user", "auditor"), s.addPerson("acme", "una", "auditor")
	tree := policies.Source{"none.rego": []byte(`package writ.ext.none

# METADATA
# title: No plans
# description: No plan is opened any more.
# custom:
#   id: none.open
deny contains {"id": "none.open", "reason": "No plan is opened any more."} if input.intent.type == "plan.open"
`)}
	raw, err := policies.BuildBundle(policies.Tree{Source: tree, Revision: 1})
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(catalog.PolicyShadow{Since: time.Now().UTC(), Digest: tree.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)})
	if err != nil {
		t.Fatal(err)
	}
	b := s.at(ben)
	if p := b.open("/console/policies"); p.status != http.StatusOK || strings.Contains(p.text, "The tree that is tried") {
		t.Errorf("%d\n%s", p.status, p.text)
	}
	s.operate("admin.put", catalog.AdminPut{Tenant: "system", Data: &catalog.Data{Key: catalog.PolicyShadowKey, Value: value}})
	var p page
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(p.text, "none.open") {
		if time.Now().After(deadline) {
			t.Fatalf("no difference: %d\n%s", p.status, p.text)
		}
		if turn := s.ask(s.as("ana"), "What is the answer?"); turn.PlanID == "" {
			t.Fatalf("%+v", turn)
		}
		p = b.open("/console/policies")
	}
	p.shows(t, "The tree that is tried", tree.Digest(), "plan.open", "What it decides otherwise")
	link := regexp.MustCompile(`href="(/console/intents/[^"]+)"><code>[^<]+</code></a></td><td>.*?</td><td><code>plan.open`).FindStringSubmatch(p.text)
	if link == nil {
		t.Fatalf("no link to an intent:\n%s", p.text)
	}
	b.open(link[1]).shows(t, "plan.open")
	other := s.at(una).open("/console/policies")
	other.shows(t, "The tree that is tried")
	if strings.Contains(other.text, "none.open") {
		t.Errorf("another tenant reads it:\n%s", other.text)
	}
}

// summarize approves a tool again as it is, with a sentence for approvers.
func (s *system) summarize(tool, summary string) {
	s.t.Helper()
	versions, err := approval.ReadVersions(s.skilled[0])
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range versions {
		if strings.HasSuffix(v.Name, "."+tool) {
			s.operate("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: v.Name, Digest: v.Digest, Effect: catalog.Pure, Server: v.Server, Trusted: v.Trusted, Summary: summary})
			return
		}
	}
	s.t.Fatalf("no skill %s", tool)
}

// pinAnother has an earlier version of a skill approved, as if its server had changed it since.
func (s *system) pinAnother(tool string) string {
	s.t.Helper()
	versions, err := approval.ReadVersions(s.skilled[0])
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range versions {
		if (intents.Pin{Skill: v.Name}).OfTool(tool) || strings.HasSuffix(v.Name, "."+tool) {
			name := v.Name
			v.Digest, v.Description, v.Declared = intents.Digest([]byte("before")), "What it said before.", false
			for _, dir := range s.skilled {
				if err := approval.WriteVersions(dir, append(versions, v)); err != nil {
					s.t.Fatal(err)
				}
			}
			s.operate("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: name, Digest: v.Digest, Effect: catalog.Pure, Server: v.Server})
			return name
		}
	}
	s.t.Fatalf("no skill %s", tool)
	return ""
}

// branches is a run with conditions, whose last node waits for people.
const branches = `workflow_id: branches
version: "1"
description: Fetches counts, adds them up and tells people of the total, if there is one.
inputs: {type: object, properties: {first: {type: integer}}, required: [first]}
nodes:
  - {id: fetch, type: function, fn: lab.fetch, inputs: {first: "${inputs.first}"}}
  - id: sum
    type: python
    fn: |
      import json, sys
      print("adding up", file=sys.stderr)
      print(json.dumps({"total": sum(json.load(open(input_file))["counts"])}))
    inputs: {counts: "${nodes.fetch.outputs.counts}"}
  - {id: thank, type: function, fn: lab.notify, inputs: {text: "${nodes.sum.outputs.total}"}}
  - {id: alarm, type: function, fn: lab.notify, inputs: {text: "there is nothing"}}
edges:
  - {from: fetch, to: sum}
  - {from: sum, to: thank, condition: "nodes.sum.outputs.total > 0"}
  - {from: sum, to: alarm, condition: "nodes.sum.outputs.total == 0"}
`

// ranBranches runs branches for somebody, and another person approves its last node.
func (s *system) ranBranches(who, approver person) string {
	s.t.Helper()
	id := s.startRun(who, "branches", map[string]any{"first": 3})
	s.runUntil(who, id, "it waits", waits("thank"))
	for _, held := range s.inbox(approver) {
		if held.PlanID == id {
			if _, p := s.decide(approver, held.IntentID, catalog.DecisionApprove, ""); p.Code != "" {
				s.t.Fatalf("%+v", p)
			}
		}
	}
	if v := s.runUntil(who, id, "it ends", ended); v.Status != catalog.PlanComplete {
		s.t.Fatalf("%v %+v", nodes(v), v.Failure)
	}
	return id
}

// TestConsolePlan: the page of a run has its conditions and how long it waited for people; its user
// replays it and cancels another one there, and nobody else is offered that.
func TestConsolePlan(t *testing.T) {
	t.Parallel()
	l := serveLab(t, nil)
	s := start(t, setup{Skills: []string{l.skills}, Agents: registryDir(t, map[string]string{"workflows/branches.yaml": branches})})
	ben, _, _ := s.holds("lab.notify")
	ana, audrey := s.as("ana"), s.addPerson("default", "audrey", "auditor")
	id := s.ranBranches(ana, ben)
	a, b := s.at(ana), s.at(audrey)
	p := a.open("/console/plans/" + id)
	p.shows(t, "It is done.", "2 if nodes.sum.outputs.total > 0", "2 if nodes.sum.outputs.total == 0 (it is not so)", "Replay this run", "Hatched")
	if m := regexp.MustCompile(`<tr id="step-3">.*<td class="number">[0-9.]+m?s</td><td class="number">[0-9.]+m?s</td>`).FindString(p.text); m == "" || !strings.Contains(p.text, `class="hatch"`) {
		t.Errorf("no wait for people:\n%s", p.text)
	}
	other := b.open("/console/plans/" + id)
	other.shows(t, "It is done.")
	if strings.Contains(other.text, "Replay this run") {
		t.Error("an auditor is offered to replay another user's run")
	}
	a.open("/console/plans/"+id+"/logs?step=2").shows(t, "step 2 of", "adding up")
	a.open("/console/plans/"+id+"/logs?step=1").shows(t, "It has no lines.")
	if p := a.open("/console/plans/" + id + "/logs?step=x"); p.status != http.StatusBadRequest || !strings.Contains(p.text, "/step") {
		t.Errorf("the log of no step: %d\n%s", p.status, p.text)
	}
	if p := b.open("/console/plans/" + id + "/logs"); p.status != http.StatusForbidden || !strings.Contains(p.text, "logs:read") {
		t.Errorf("a log without logs:read: %d\n%s", p.status, p.text)
	}
	at := "/console/plans/" + id + "/replay"
	if p := b.send(at, url.Values{"csrf": {other.csrf()}, "from_node": {"sum"}, "mode": {"freeze"}}); p.status != http.StatusForbidden && p.status != http.StatusNotFound {
		t.Errorf("an auditor replays another user's run: %d\n%s", p.status, p.text)
	}
	a.send(at, url.Values{"csrf": {p.csrf()}, "from_node": {"sum"}, "mode": {"freeze"}}).shows(t, "This is the replay.", "which repeats")
	open := s.startRun(ana, "branches", map[string]any{"first": 3})
	s.runUntil(ana, open, "it waits", waits("thank"))
	p = a.open("/console/plans/" + open)
	p.shows(t, "Cancel this plan", "It is being carried out.")
	a.send("/console/plans/"+open+"/cancel", url.Values{"csrf": {p.csrf()}}).shows(t, "You cancelled the plan.", "It failed.")
}
