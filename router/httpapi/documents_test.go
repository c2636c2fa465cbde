package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/storage"
)

// get reads a route of gateways.
func (e *entrance) get(path string, headers ...string) *httptest.ResponseRecorder {
	e.Helper()
	r := httptest.NewRequestWithContext(e.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.plain.ServeHTTP(w, r)
	return w
}

// TestReadsOfPlans: own plans, and others' by who oversees them with an audit.read of the last hour
// on record, of that reader and that plan. Nothing of it is an intent.
func TestReadsOfPlans(t *testing.T) {
	e := open(t)
	e.Want(e.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	e.Want(e.NewPlan("p1").Open(), intents.OK)
	id := routertest.PlanID("p1")
	path := readapi.Plans + "/" + id
	ana, bob := e.bearer("ana", "default", "user"), e.bearer("bob", "default", "user")
	audrey := e.bearer("audrey", "default", "auditor")
	before := e.Dir.View().Position()
	if v := decoded[catalog.PlanView](t, e.get(path, ana...)); v.PlanID != id || v.UserID != "ana" {
		t.Errorf("%+v", v)
	}
	if v := decoded[catalog.PlanTrace](t, e.get(path+"/trace", ana...)); v.PlanID != id || len(v.Events) == 0 {
		t.Errorf("%+v", v)
	}
	if v := decoded[catalog.PlanListResult](t, e.get(readapi.Plans, ana...)); len(v.Plans) != 1 || v.Plans[0].PlanID != id {
		t.Errorf("%+v", v)
	}
	if v := decoded[catalog.PlanListResult](t, e.get(readapi.Plans, bob...)); len(v.Plans) != 0 {
		t.Errorf("bob's: %+v", v)
	}
	for name, c := range map[string]struct {
		headers []string
		code    intents.Code
	}{
		"another user": {bob, intents.NotFound}, "another tenant": {e.bearer("ana", "acme", "user"), intents.NotFound},
		"another tenant's auditor": {e.bearer("audrey", "acme", "auditor"), intents.NotFound},
		"an auditor":               {audrey, intents.AuditRequired},
		"no capability":            {e.bearer("ana", "default", "approver"), intents.RBACForbidden},
		"no grant":                 {nil, intents.Unauthorized},
	} {
		for _, at := range []string{path, path + "/trace"} {
			w := e.get(at, c.headers...)
			refused(t, w, c.code)
			if got := w.Header().Get(readapi.HeaderSubject); (got == catalog.SubjectPlan(id)) != (c.code == intents.AuditRequired) {
				t.Errorf("%s: subject %q", name, got)
			}
		}
	}
	if now := e.Dir.View().Position(); now != before {
		t.Errorf("reads have left %d records", now-before)
	}

	ofPlan, ofOther, ofBob := e.audited("audrey", catalog.SubjectPlan(id)), e.audited("audrey", catalog.SubjectPlan("plan_x")), e.audited("bob2", catalog.SubjectPlan(id))
	for name, c := range map[string]struct {
		audit []string
		ok    bool
	}{"of the plan": {ofPlan, true}, "of another plan": {ofOther, false}, "of another reader": {ofBob, false}, "no audit.read": {[]string{readapi.HeaderAudit, e.OK(find(e)).IntentID}, false}} {
		if w := e.get(path, slices.Concat(audrey, c.audit)...); (w.Code == http.StatusOK) != c.ok {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	refused(t, e.get(readapi.Plans, audrey...), intents.AuditRequired)
	if v := decoded[catalog.PlanListResult](t, e.get(readapi.Plans, slices.Concat(audrey, e.audited("audrey", catalog.SubjectPlans))...)); len(v.Plans) != 1 {
		t.Errorf("%+v", v)
	}
	e.Clock.Move(time.Hour)
	refused(t, e.get(path, slices.Concat(e.bearer("audrey", "default", "auditor"), ofPlan)...), intents.AuditRequired)
}

// TestStandingGrantReads: a standing grant for reading reads things of its plan by their id, and
// nothing else.
func TestStandingGrantReads(t *testing.T) {
	e := open(t)
	for _, p := range []string{"p1", "p2"} {
		e.Want(e.NewPlan(p).Open(), intents.OK)
	}
	standing := func(plan string) []string {
		return []string{"Authorization", "Bearer " + e.Grant("ana", "default", routertest.Intent{Grant: func(g *intents.Grant) {
			forReading(g)
			g.For, g.Act.Client = "plan:"+routertest.PlanID(plan), "token"
		}})}
	}
	path := readapi.Plans + "/" + routertest.PlanID("p1")
	if w := e.get(path, standing("p1")...); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	refused(t, e.get(path, standing("p2")...), intents.NotFound)
	for _, at := range []string{readapi.Plans, readapi.Usage, readapi.Messages, readapi.Schedules, "/v1/intents", "/v1/approvals", "/v1/policy"} {
		refused(t, e.get(at, standing("p1")...), intents.GrantInvalid)
	}
}

// TestToolBoundReads: a grant of an API key that is bound to tools reads no call of another one.
func TestToolBoundReads(t *testing.T) {
	e := open(t)
	e.Pin("pay", catalog.Once)
	e.Want(e.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: "kb", Hash: intents.Digest([]byte("kb")), UserID: "ana", MaxRoles: []string{"user"}, Tools: []string{"other"}}}), intents.OK)
	e.Want(e.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: "ka", Hash: intents.Digest([]byte("ka")), UserID: "ana", MaxRoles: []string{"user"}, Tools: []string{"pay"}}}), intents.OK)
	e.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: json.RawMessage(`1`)})))
	id := e.Want(e.Begun("p1", "pay").Started(1).Call("pay", `{}`), intents.OK).IntentID
	for key, code := range map[string]int{"ka": http.StatusOK, "kb": http.StatusNotFound} {
		for _, path := range []string{"/v1/intents/" + id, readapi.Plans + "/" + routertest.PlanID("p1")} {
			if w := e.get(path, e.bearerOf(intents.ClientOf(key), "ana", "default", "user")...); w.Code != code {
				t.Errorf("%s with %s: %d %s", path, key, w.Code, w.Body)
			}
		}
	}
	for i, plan := range []string{routertest.PlanID("p1"), "plan_gone", ""} {
		row := map[string]any{"message_id": fmt.Sprint("m", i), "tenant_id": "default", "user_id": "ana", "session_id": "s", "message_type": "user", "content": "pay", "created_at": intents.FormatTime(e.Clock.Now())}
		if plan != "" {
			row["plan_id"] = plan
		}
		body, err := json.Marshal(row)
		e.Must(err)
		_, err = e.docs.Create(t.Context(), "default", storage.IndexMessages, storage.Document{ID: fmt.Sprint("m", i), Body: body})
		e.Must(err)
	}
	for key, n := range map[string]int{"ka": 2, "kb": 1, "": 3} {
		bearer := e.bearer("ana", "default", "user")
		if key != "" {
			bearer = e.bearerOf(intents.ClientOf(key), "ana", "default", "user")
		}
		if v := decoded[catalog.MessageListResult](t, e.get(readapi.Messages, bearer...)); len(v.Messages) != n {
			t.Errorf("%q: %+v", key, v.Messages)
		}
	}
}

// TestTraceOfASession: it has the plans that the reader may see, and of somebody else's session it
// needs the audit.read of a list.
func TestTraceOfASession(t *testing.T) {
	e := open(t)
	e.Pin("pay", catalog.Once)
	e.Want(e.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: "kb", Hash: intents.Digest([]byte("kb")), UserID: "ana", MaxRoles: []string{"user"}, Tools: []string{"other"}}}), intents.OK)
	for _, name := range []string{"p1", "p2"} {
		p := e.NewPlan(name)
		p.Session = "shared"
		e.Want(p.Open(), intents.OK)
		if name == "p1" {
			e.Want(p.Claim(), intents.OK)
			e.Want(p.Plan(routertest.Steps(1, "pay")), intents.OK)
			e.Want(p.Fail(), intents.OK)
		}
	}
	paid, path := routertest.PlanID("p1"), readapi.Plans+"/"+routertest.PlanID("p2")+"/trace"
	ana := e.bearer("ana", "default", "user")
	standing := []string{"Authorization", "Bearer " + e.Grant("ana", "default", routertest.Intent{Grant: func(g *intents.Grant) {
		forReading(g)
		g.For, g.Act.Client = "plan:"+routertest.PlanID("p2"), "token"
	}})}
	audrey := e.bearer("audrey", "default", "auditor")
	for name, c := range map[string]struct {
		query   string
		headers []string
		others  bool
	}{
		"one plan":               {"", ana, false},
		"the session":            {"?session=true", ana, true},
		"a key of another tool":  {"?session=true", e.bearerOf(intents.ClientOf("kb"), "ana", "default", "user"), false},
		"a grant of one plan":    {"?session=true", standing, false},
		"an auditor of the list": {"?session=true", slices.Concat(audrey, e.audited("audrey", catalog.SubjectPlans)), true},
	} {
		w := e.get(path+c.query, c.headers...)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), paid) != c.others || !strings.Contains(w.Body.String(), routertest.PlanID("p2")) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	of := slices.Concat(audrey, e.audited("audrey", catalog.SubjectPlan(routertest.PlanID("p2"))))
	w := e.get(path+"?session=true", of...)
	refused(t, w, intents.AuditRequired)
	if got := w.Header().Get(readapi.HeaderSubject); got != catalog.SubjectPlans {
		t.Errorf("subject %q", got)
	}
	refused(t, e.get(path+"?sessions=true", ana...), intents.SchemaInvalid)
}

// TestReadParameters: a list accepts its own parameters and no others.
func TestReadParameters(t *testing.T) {
	e := open(t)
	ana := e.bearer("ana", "default", "user")
	for at, pointer := range map[string]string{
		readapi.Plans + "?limit=many": "/limit", readapi.Plans + "?limit=0": "/limit", readapi.Plans + "?limit=101": "/limit", readapi.Plans + "?kind=agent": "/kind",
		readapi.Plans + "?status=nonsense": "/status", readapi.Plans + "?runs=yes": "/runs", readapi.Plans + "?limit=1&limit=2": "/limit", readapi.Usage + "?until=2026-13-45T99:00:00Z": "/until",
		readapi.Messages + "?whole_tenant=true": "/whole_tenant", readapi.Messages + "?after=none": "/after", readapi.Usage + "?since=yesterday": "/since",
		readapi.Usage + "?limit=3": "/limit", readapi.Agents + "?kind=gone": "/kind", readapi.Sessions + "?x=y": "",
	} {
		if p := refused(t, e.get(at, ana...), intents.SchemaInvalid); p.Pointer != pointer {
			t.Errorf("%s: at %q", at, p.Pointer)
		}
	}
	refused(t, e.get(readapi.Usage+"?whole_tenant=true", ana...), intents.RBACForbidden)
	for _, at := range []string{readapi.Usage, readapi.Messages, readapi.Sessions, readapi.Knowledge, readapi.Agents, readapi.Schedules, readapi.Usage + "?since=2026-01-31T00:00:00Z&by_day=true"} {
		if w := e.get(at, ana...); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", at, w.Code, w.Body)
		}
	}
}

// TestAccessLog: each read is a line, whatever became of it, without the text of its query; files
// are of a day, of this user alone, and go after 90.
func TestAccessLog(t *testing.T) {
	e := open(t)
	dir := filepath.Join(t.TempDir(), "access")
	log := httpapi.OpenAccessLog(dir, slog.New(slog.DiscardHandler))
	e.plain = httpapi.New(httpapi.Config{Router: e.Router, State: e.Dir, Documents: e.docs, Recorder: e.index, Policy: e.Policy, Access: log, Now: e.Clock.Now, Log: slog.New(slog.DiscardHandler)})
	e.Want(e.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: "ka", Hash: intents.Digest([]byte("ka")), UserID: "ana", MaxRoles: []string{"user"}}}), intents.OK)
	mine := e.OK(find(e)).IntentID
	audrey := e.bearer("audrey", "default", "auditor")
	for _, r := range []struct {
		path    string
		headers []string
	}{
		{"/v1/intents?type=secret.word", e.bearerOf("apikey:ka", "ana", "default", "user")},
		{"/v1/intents/" + mine, audrey},
		{"/v1/intents/" + mine, slices.Concat(audrey, e.audited("audrey", catalog.SubjectIntent(mine)))},
		{"/v1/intents/" + mine, nil},
	} {
		e.get(r.path, append(r.headers, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")...)
	}
	day := e.Clock.Now().UTC().Format(time.DateOnly)
	file := filepath.Join(dir, day+".jsonl")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || bytes.Contains(raw, []byte("secret.word")) {
		t.Errorf("%v %v %s", info, err, raw)
	}
	var got []httpapi.AccessLine
	for line := range bytes.Lines(raw) {
		var l httpapi.AccessLine
		if err := json.Unmarshal(line, &l); err != nil || !l.At.Equal(e.Clock.Now()) {
			t.Errorf("%s: %v", line, err)
		}
		l.At = time.Time{}
		got = append(got, l)
	}
	const trace = "0af7651916cd43dd8448eb211c80319c"
	subject := catalog.SubjectIntent(mine)
	if d := cmp.Diff([]httpapi.AccessLine{
		{RequestID: trace, Tenant: "default", Key: "ka", User: "ana", Route: "/v1/intents", Own: true, Status: 200},
		{RequestID: trace, Tenant: "default", User: "audrey", Route: "/v1/intents/:id", Subject: subject, Status: 428},
		{RequestID: trace, Tenant: "default", User: "audrey", Route: "/v1/intents/:id", Subject: subject, Status: 200},
		{RequestID: trace, Route: "/v1/intents/:id", Status: 401},
	}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}

	write := func(days int) {
		log.Write(context.Background(), httpapi.AccessLine{At: e.Clock.Now().AddDate(0, 0, days)})
	}
	write(httpapi.AccessLogDays)
	if _, err := os.Stat(file); err != nil {
		t.Error("it goes too early", err)
	}
	write(httpapi.AccessLogDays + 1)
	if _, err := os.Stat(file); err == nil {
		t.Error("it stays")
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 || !strings.HasSuffix(left[0].Name(), ".jsonl") {
		t.Errorf("%v", left)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadAfter: a read waits for what its gateway knows to be recorded, and says so if that does
// not come.
func TestReadAfter(t *testing.T) {
	e := open(t)
	ana := e.bearer("ana", "default", "user")
	last := e.OK(find(e)).Position
	for after, code := range map[int64]int{*last: http.StatusOK, *last + 1000: intents.Overloaded.Info().Status} {
		if w := e.get(readapi.Plans, append(ana, readapi.HeaderAfter, strconv.FormatInt(after, 10))...); w.Code != code {
			t.Errorf("after %d: %d %s", after, w.Code, w.Body)
		}
	}
}
