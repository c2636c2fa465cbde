package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/ratelimit"
)

// hostile is a text that acts in a page that does not escape it, and contains hidden characters
// for one that does.
const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(2)>` + "\u202e{{.}}</textarea>"

// fill sets every text of a value, however deep, that a template could show.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			raw, _ := json.Marshal(map[string]string{hostile: hostile})
			v.SetBytes(raw)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		if v.Type().Elem().Kind() != reflect.Interface {
			fill(value)
		}
		v.SetMapIndex(key, value)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	default:
	}
}

// bodies of the pages, by template.
func bodies() map[string]any {
	return map[string]any{
		"login": &entrance{}, "problem": &pageError{}, "now": &intentList{}, "plans": &planList{}, "plan": &planPage{}, "logs": &logsPage{}, "intent": &intentPage{},
		"approvals": &approvalsPage{}, "approval": &approvalPage{}, "agents": &agentsPage{}, "skill": &skillPage{},
		"policies": &policiesPage{}, "explain": &explanation{}, "record": &recordPage{}, "health": &healthPage{},
		"connect": &connectPage{}, "onward": &onward{}, "stop": &stopPage{}, "you": &youPage{},
	}
}

var element = regexp.MustCompile(`<[a-z]+[^>]*>`)

// TestNothingActs: texts on a page stay texts, and no page has a script, a style or a handler in
// it.
func TestNothingActs(t *testing.T) {
	c := newConsole(t, nil)
	seen := bodies()
	for name := range c.pages {
		if name == "layout" {
			continue
		}
		body, ok := seen[name]
		if !ok {
			t.Errorf("page %s is not tried", name)
			continue
		}
		for _, filled := range []bool{true, false} {
			if filled {
				fill(reflect.ValueOf(body).Elem())
			} else {
				body = reflect.New(reflect.TypeOf(body).Elem()).Interface()
				if name == "problem" {
					body = &pageError{Problem: &problem.Problem{}}
				}
			}
			w := httptest.NewRecorder()
			s := &session{User: hostile, Tenant: hostile, CSRF: hostile, message: hostile}
			c.render(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/now", nil), http.StatusOK, name, s, body)
			text := w.Body.String()
			if strings.Contains(text, "%!") {
				t.Errorf("%s has a verb that does not fit its value:\n%s", name, text)
			}
			if w.Code != http.StatusOK || filled && !strings.Contains(text, "&lt;script&gt;") {
				t.Fatalf("%s: %d, or nothing hostile in it\n%s", name, w.Code, text)
			}
			for _, tag := range element.FindAllString(text, -1) {
				if strings.HasPrefix(tag, "<img") || strings.HasPrefix(tag, "<script") && !strings.Contains(tag, `src="/console/static/console.js"`) ||
					strings.Contains(tag, " style=") || regexp.MustCompile(`\son[a-z]+=`).MatchString(tag) && !strings.Contains(tag, "&lt;") {
					t.Errorf("%s has %s", name, tag)
				}
			}
			if strings.Contains(text, "javascript:") {
				t.Errorf("%s has an address that acts", name)
			}
		}
	}
	if len(c.pages) < 15 {
		t.Errorf("%d pages", len(c.pages))
	}
}

// api answers for two keys and records its requests.
type api struct {
	revoked  bool
	requests []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.requests = append(a.requests, r.Method+" "+r.URL.Path)
	switch {
	case a.revoked || r.Header.Get("X-Api-Key") != "key":
		problem.New(intents.Unauthorized, "", "the API key is not known").Write(w)
	case r.URL.Path == "/v1/me":
		fmt.Fprint(w, `{"tenant_id":"acme","user_id":"ana","roles":[]}`)
	case r.URL.Path == "/v1/intents":
		fmt.Fprint(w, `{"intents":[]}`)
	default:
		problem.New(intents.NotFound, "", "no such path").Write(w)
	}
}

func newConsole(t *testing.T, h http.Handler) *Console {
	t.Helper()
	if h == nil {
		h = &api{}
	}
	c, err := New(Config{API: h, PublicURL: "https://writ.example", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func send(c *Console, method, path string, form url.Values, cookie *http.Cookie) *http.Response {
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	if cookie != nil {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	return w.Result()
}

func logIn(t *testing.T, c *Console) *http.Cookie {
	t.Helper()
	resp := send(c, http.MethodPost, "/console/login", url.Values{"key": {"key"}}, nil)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/console/now" || len(resp.Cookies()) != 1 {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	return resp.Cookies()[0]
}

// TestSession: the cookie's attributes, and the end of a session.
func TestSession(t *testing.T) {
	a, now := &api{}, time.Now()
	c := newConsole(t, a)
	c.sessions = ratelimit.NewRecent[*session](shares, sessionLife, func() time.Time { return now })
	cookie := logIn(t, c)
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/console" || cookie.MaxAge != 3600 || strings.Contains(cookie.Value, "key") {
		t.Errorf("cookie %+v", cookie)
	}
	status := func() int {
		resp := send(c, http.MethodGet, "/console/now", nil, cookie)
		defer resp.Body.Close()
		h := resp.Header
		if h.Get("Content-Security-Policy") != contentPolicy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("header %v", h)
		}
		return resp.StatusCode
	}
	if got := status(); got != http.StatusOK {
		t.Errorf("%d", got)
	}
	for _, weak := range []string{"unsafe", "http:", "https:", "data:", "*"} {
		if strings.Contains(contentPolicy, weak) {
			t.Errorf("the policy allows %s", weak)
		}
	}
	a.revoked = true
	if got := status(); got != http.StatusSeeOther {
		t.Errorf("the key is revoked: %d", got)
	}
	a.revoked = false
	if got := status(); got != http.StatusSeeOther {
		t.Errorf("after that: %d", got)
	}
	cookie = logIn(t, c)
	now = now.Add(sessionLife)
	if got := status(); got != http.StatusSeeOther {
		t.Errorf("an hour later: %d", got)
	}
	cookie = logIn(t, c)
	s, _ := c.find(cookie.Value)
	for _, token := range []string{"", "guess", s.CSRF} {
		want := http.StatusForbidden
		if token == s.CSRF {
			want = http.StatusSeeOther
		}
		resp := send(c, http.MethodPost, "/console/logout", url.Values{"csrf": {token}}, cookie)
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("token %q: %d", token, resp.StatusCode)
		}
	}
	if got := status(); got != http.StatusSeeOther {
		t.Errorf("logged out: %d", got)
	}
}

// TestStrangers: every page asks for a session first, and nothing is requested for a stranger.
func TestStrangers(t *testing.T) {
	a := &api{}
	c := newConsole(t, a)
	wrong := &http.Cookie{Name: cookieName, Value: "wrong"}
	for _, path := range []string{"now", "live", "plans", "plans/p", "plans/p/logs", "intents/o", "intents/o/proof", "approvals", "approvals/a", "agents", "skills/s", "policies", "policies/explain/o", "record", "record/intents", "health", "stop", "you", "session"} {
		resp := send(c, http.MethodGet, "/console/"+path, nil, wrong)
		if resp.Body.Close(); resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(resp.Header.Get("Location"), "/console/login?next=") {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	for _, path := range []string{"approvals/a", "plans/p/cancel", "plans/p/replay", "skills/s", "record/bundle", "stop", "you/connect", "you/disconnect", "session", "logout"} {
		resp := send(c, http.MethodPost, "/console/"+path, url.Values{}, wrong)
		if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if len(a.requests) != 0 {
		t.Errorf("asked %v", a.requests)
	}
	resp := send(c, http.MethodPost, "/console/login", url.Values{"key": {"wrong"}}, nil)
	text, _ := io.ReadAll(resp.Body)
	if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) > 0 || !strings.Contains(string(text), "UNAUTHORIZED") {
		t.Errorf("a wrong key: %d %s", resp.StatusCode, text)
	}
}

func TestNext(t *testing.T) {
	for path, want := range map[string]string{
		"/console/plans/p?x=1": "/console/plans/p?x=1", "": "/console/now", "//evil.example/console/": "/console/now", "https://evil.example/console/now": "/console/now",
		"/v1/intents": "/console/now", `/console/\evil`: "/console/now", "/console/logout": "/console/now", "javascript:alert(1)": "/console/now",
	} {
		if got := next(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestGraph: each step is to the right of those that it waits for.
func TestGraph(t *testing.T) {
	v := catalog.PlanView{Steps: []catalog.StepView{
		{PlanStep: catalog.PlanStep{Step: 1, Task: "a"}},
		{PlanStep: catalog.PlanStep{Step: 2, Task: "b", Parallel: true}},
		{PlanStep: catalog.PlanStep{Step: 3, Task: "c", After: []int{1, 2}}},
		{PlanStep: catalog.PlanStep{Step: 4, Task: strings.Repeat("d", 50)}},
	}}
	g := graphOf(v)
	if len(g.Boxes) != 4 || len(g.Arrows) != 3 || g.Boxes[0].X != g.Boxes[1].X || g.Boxes[0].Y == g.Boxes[1].Y || g.Boxes[2].X <= g.Boxes[1].X || g.Boxes[3].X <= g.Boxes[2].X {
		t.Errorf("%+v", g)
	}
	v.Steps[0].After = []int{3} // no plan has a circle
	if g := graphOf(v); len(g.Boxes) != 4 {
		t.Errorf("%+v", g)
	}
}

// TestShown: hidden characters are written out.
func TestShown(t *testing.T) {
	if got := shown("a\u202eb\u200b\x1b[2J\n"); got != `a<U+202E>b<U+200B><U+001B>[2J`+"\n" {
		t.Errorf("%q", got)
	}
	d := diff("was", "one\ntwo", "is", "one\nthree")
	var kinds []string
	for _, l := range d {
		kinds = append(kinds, l.Kind)
	}
	if got := strings.Join(kinds, " "); got != "place place place same gone added" || diff("a", "x", "b", "x") != nil {
		t.Errorf("%s %+v", got, d)
	}
}
