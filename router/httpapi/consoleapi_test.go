package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/state"
)

// reads implements the reads that an entrance has. The rest must not be called.
type reads struct {
	httpapi.ConsoleAPI
	w *routertest.World
}

func (d reads) Signed(ctx context.Context, position int64) (consoleapi.Signed, error) {
	rec, err := d.w.Journal.Get(ctx, position)
	if err != nil {
		return consoleapi.Signed{}, err
	}
	o, err := state.ReadIntent(rec)
	return consoleapi.Signed{Type: o.Type, Args: o.Args}, err
}

func (reads) Policy() map[string]string { return map[string]string{"a.rego": ""} }

func (reads) Agents(_ context.Context, tenant string, foreign bool) ([]consoleapi.Revision, error) {
	r := consoleapi.Revision{Tenant: tenant}
	if foreign {
		r.Files = map[string]string{"agents/a.yaml": "of system"}
	}
	return []consoleapi.Revision{r}, nil
}

func (reads) Explain(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

func (reads) Bundle(_ context.Context, w io.Writer, _ string) error {
	_, err := w.Write(bytes.Repeat([]byte("x"), 1<<10))
	return errors.Join(err, errors.New("the rest cannot be read"))
}

// TestUse: what each task used of models is read from the intents that report it, with its cost if all
// models have a price.
func TestUse(t *testing.T) {
	e := open(t)
	p := e.Begun("p1", "pay")
	task := p.Started(1)
	finish := catalog.StepFinish{TaskID: task.TaskID, Status: "failed", Reason: "x", Usage: []catalog.Usage{
		{Agent: "subagent", Model: "test:priced", Calls: 1, InputTokens: 3_000_000, CachedTokens: 1_000_000, OutputTokens: 1_000_000},
	}}
	e.Want(task.Do(task.Intent("step.finish", finish)), intents.OK)
	e.Want(p.Plan(routertest.Steps(2, "pay")), intents.OK)
	task = p.Started(2)
	finish.TaskID = task.TaskID
	finish.Usage = append(finish.Usage, catalog.Usage{Agent: "subagent", Model: "test:free", Calls: 1, OutputTokens: 7})
	e.Want(task.Do(task.Intent("step.finish", finish)), intents.OK)
	at := consoleapi.Path + "plans/" + routertest.PlanID("p1") + "/use"
	used := decoded[[]consoleapi.Use](t, e.get(at, e.bearer("ana", "default", "user")...))
	if len(used) != 2 || used[0].Tokens != 4_000_000 || used[0].TaskID == "" || used[0].Cost == nil || *used[0].Cost != 2*2+0.5+8 || used[1].TaskID != task.TaskID || used[1].Tokens != 4_000_007 || used[1].Cost != nil {
		t.Errorf("%+v", used)
	}
	refused(t, e.get(at, e.bearer("bob", "default", "user")...), intents.NotFound)
	refused(t, e.get(at, e.bearer("audrey", "default", "auditor")...), intents.AuditRequired)
}

// TestConsoleAPI: the roles of the grant determine what the console reads of the record. Nobody
// sees there what a policy masks, nor with a standing grant; an interrupted bundle is recognisable.
func TestConsoleAPI(t *testing.T) {
	e := open(t)
	e.Pin("pay", catalog.Pure)
	plain := e.Want(e.Begun("p1", "pay").Started(1).Call("pay", `{"card":"4111"}`), intents.OK).IntentID
	source := maps.Clone(e.Policy.Engine().Source())
	source["authz/mask.rego"] = []byte(`package writ.authz

# METADATA
# description: Nobody sees it.
obligations contains {"name": "mask", "value": "/output"} if input.intent.type == "skill.call"
`)
	_, err := e.Policy.ReplaceTree(t.Context(), policies.Tree{Source: source}, e.Router.SelfProof)
	if err != nil {
		t.Fatal(err)
	}
	masked := e.Want(e.Begun("p2", "pay").Started(1).Call("pay", `{"card":"4112"}`), intents.OK).IntentID

	at := func(path string, headers []string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, consoleapi.Path+path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		e.plain.ServeHTTP(w, r)
		return w
	}
	ana, audrey, bob := e.bearer("ana", "default", "user"), e.bearer("audrey", "default", "auditor"), e.bearer("bob", "default", "user")
	overseeing := func(subject string) []string { return slices.Concat(audrey, e.audited("audrey", subject)) }
	ofPlain, ofMasked := overseeing(catalog.SubjectPlan(routertest.PlanID("p1"))), overseeing(catalog.SubjectPlan(routertest.PlanID("p2")))
	if got := e.list("ana", "default", nil, "?skill=pay"); len(got.Intents) != 2 || got.Intents[1].IntentID != plain || got.Intents[1].Skill != "pay" {
		t.Errorf("the calls of a skill: %+v", got)
	}
	for _, who := range [][2][]string{{ana, ana}, {ofPlain, ofMasked}} {
		if s := decoded[consoleapi.Signed](t, at("intents/"+plain, who[0])); s.Masked || !strings.Contains(string(s.Args), "4111") {
			t.Errorf("%+v", s)
		}
		if s := decoded[consoleapi.Signed](t, at("intents/"+masked, who[1])); !s.Masked || s.Args != nil || s.Type != "skill.call" {
			t.Errorf("masked: %+v", s)
		}
	}
	refused(t, at("intents/"+plain, bob), intents.NotFound)
	refused(t, at("explain/"+plain, ana), intents.RBACForbidden)
	refused(t, at("explain/"+masked, ofMasked), intents.RBACForbidden)
	for path, others := range map[string][]string{"intents/" + plain: ofMasked, "explain/" + plain: audrey, "bundle": ofPlain} {
		refused(t, at(path, others), intents.AuditRequired)
	}
	if w := at("explain/"+plain, ofPlain); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, path := range []string{"intents/" + plain, "skills", "agents", "policy", "explain/" + plain, "bundle", "health", "plans/" + routertest.PlanID("p1") + "/use", "plans/" + routertest.PlanID("p1") + "/lines"} {
		for _, work := range []string{"", "plan:" + routertest.PlanID("p1")} {
			grant := e.Grant("audrey", "default", routertest.Intent{Roles: []string{"auditor"}, Grant: func(g *intents.Grant) { g.For, g.Act.Client = work, "token" }})
			refused(t, at(path, []string{"Authorization", "Bearer " + grant}), intents.GrantInvalid)
		}
		refused(t, at(path, []string{"X-Api-Key", "key"}), intents.Unauthorized)
	}
	refused(t, at("bundle", ana), intents.RBACForbidden)
	e.Want(e.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "author", Capabilities: []string{"agents:read"}}}), intents.OK)
	e.Want(e.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "amy", Roles: []string{"user", "author"}}}), intents.OK)
	for role, sees := range map[string]bool{"user": false, "author": true} {
		if got := decoded[[]consoleapi.Revision](t, at("agents", e.bearer("amy", "default", role))); len(got) != 1 || (got[0].Files != nil) != sees {
			t.Errorf("the texts of system's agents for %s: %+v", role, got)
		}
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // it is that value
			t.Errorf("a bundle that breaks off ends with %v", v)
		}
	}()
	at("bundle", overseeing(catalog.SubjectBundle))
}
