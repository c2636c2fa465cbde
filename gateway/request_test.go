package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// opened returns the arguments of every plan.open.
func (w *world) opened() []catalog.PlanOpen {
	w.t.Helper()
	var out []catalog.PlanOpen
	for _, e := range w.submits("plan.open") {
		var a catalog.PlanOpen
		if err := json.Unmarshal(e.Args(), &a); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// TestTurnHeaders: the prompts receive the data in the headers; name and e-mail only from a key
// that may act for others.
func TestTurnHeaders(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	said := http.Header{
		"X-Added-Instruction": {"Be brief."}, "X-Locale": {"de-DE"}, "X-Location": {"Bonn"}, "X-Time-Zone": {"Europe/Berlin"},
		"X-Session-Name": {"Outlets"}, "X-Session-Metadata": {`{"ward":3}`}, "X-Action-Types": {"open_page, wave"}, "X-User-Name": {"Ana"}, "X-User-Email": {"ana@example.com"},
	}
	w.call("POST", "/agent/run", `{"message":"x"}`, said, nil)
	said.Set("X-Api-Key", appKey)
	said.Set("X-User-Id", "ana")
	w.call("POST", "/agent/run", `{"message":"x"}`, said, nil)
	w.call("POST", "/agent/run", `{"message":"x"}`, nil, nil)
	want := catalog.TurnContext{Locale: "de-DE", Location: "Bonn", TimeZone: "Europe/Berlin", SessionName: "Outlets", SessionMetadata: `{"ward":3}`, ActionTypes: []string{"open_page", "wave"}}
	var got []*catalog.TurnContext
	for _, a := range w.opened() {
		got = append(got, a.Turn)
	}
	if d := cmp.Diff([]*catalog.TurnContext{&want, &want, nil}, got); d != "" {
		t.Error(d)
	}
	texts := []catalog.Transient{{AddedInstruction: "Be brief."}, {AddedInstruction: "Be brief.", UserName: "Ana", UserEmail: "ana@example.com"}, {}}
	if d := cmp.Diff(texts, transient(w)); d != "" {
		t.Error(d)
	}
	long := make([]byte, 5000)
	for i := range long {
		long[i] = 'x'
	}
	w.refused("POST", "/agent/run", `{"message":"x"}`, http.Header{"X-Added-Instruction": {string(long)}}, intents.SchemaInvalid, "/transient/added_instruction/text")
}

// transient are the texts beside the plan.open of each request.
func transient(w *world) (all []catalog.Transient) {
	w.t.Helper()
	for _, e := range w.submits("plan.open") {
		if err := e.Transient().Match(state.TransientDigests(e.Type(), e.Args())); err != nil {
			w.t.Error(err)
		}
		all = append(all, catalog.TransientOf(e.Transient()))
	}
	return all
}

// directory knows some users.
type directory map[string]string

func (d directory) Profile(_ context.Context, user string) (name, email string, err error) {
	if name, ok := d[user]; ok {
		return name, "", nil
	}
	return "", "", errors.New("nobody answers")
}

// TestProfiles: missing data about the user is looked up, by the address that an application gave
// or by the user's id. No request fails for it.
func TestProfiles(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w), func(c *Config, _ *pace) {
		c.Profiles = directory{"ana@example.com": "Ana", "bea@example.com": strings.Repeat("x", 300), "ana": "Ana"}
	})
	for _, h := range []http.Header{
		{"X-User-Email": {"ana@example.com"}},
		{"X-User-Email": {"bea@example.com"}},
		{},
		{"X-User-Email": {"ana@example.com"}, "X-User-Name": {"Ms. Moreno"}},
	} {
		h.Set("X-Api-Key", appKey)
		h.Set("X-User-Id", "ana")
		w.call("POST", "/agent/run", `{"message":"x"}`, h, nil)
	}
	w.call("POST", "/agent/run", `{"message":"x"}`, http.Header{"X-User-Email": {"bea@example.com"}}, nil) // a key that may not assert users
	want := []catalog.Transient{
		{UserName: "Ana", UserEmail: "ana@example.com"}, {UserEmail: "bea@example.com"}, {UserName: "Ana"}, {UserName: "Ms. Moreno", UserEmail: "ana@example.com"}, {UserName: "Ana"},
	}
	if d := cmp.Diff(want, transient(w)); d != "" {
		t.Error(d)
	}
}

// TestRequests: equal requests have equal digests, different ones do not.
func TestRequests(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	send := func(body string, header http.Header) *catalog.Request {
		t.Helper()
		w.call("POST", "/agent/run", body, header, nil)
		all := w.opened()
		return all[len(all)-1].Request
	}
	retry := func(n string) http.Header { return http.Header{"X-Stainless-Retry-Count": {n}} }
	if r := send(`{"message":"x"}`, nil); r != nil {
		t.Errorf("neither key nor session: %+v", r)
	}
	key := send(`{"message":"x"}`, http.Header{"Idempotency-Key": {"k1"}})
	if key == nil || key.Kind != catalog.RequestKey || *send(`{"message":"y"}`, http.Header{"Idempotency-Key": {"k1"}}) != *key || *send(`{"message":"x"}`, http.Header{"Idempotency-Key": {"k2"}}) == *key {
		t.Errorf("by key: %+v", key)
	}
	body := send(`{"message":"x","session_id":"s1"}`, nil)
	if body == nil || body.Kind != catalog.RequestBody || *send(`{ "session_id":"s1", "message":"x" }`, nil) != *body ||
		*send(`{"message":"y","session_id":"s1"}`, nil) == *body || *send(`{"message":"x","session_id":"s2"}`, nil) == *body {
		t.Errorf("by body: %+v", body)
	}
	first, again := send(`{"message":"x"}`, retry("0")), send(`{"message":"x"}`, retry("1"))
	if first == nil || first.Kind != catalog.RequestBody || again.Kind != catalog.RequestRetry || again.Digest != first.Digest {
		t.Errorf("%+v, %+v", first, again)
	}
}

// TestJoin: a request that has opened a plan before gets that plan, while it runs and afterwards.
// A message for a session in a turn is refused, and no client sends it again.
func TestJoin(t *testing.T) {
	handed, release := make(chan string, 1), make(chan struct{})
	var w *world
	w = newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		handed <- h.PlanID
		<-release
		completing(&w)(h, say)
	})
	ended := make(chan runReply)
	go func() {
		var got runReply
		w.call("POST", "/agent/run", runBody(""), nil, &got)
		ended <- got
	}()
	plan := <-handed
	busy := &intents.Answer{Code: intents.SessionBusy, Pointer: "/context/session_id", Reason: "the session has an open turn: " + plan, PlanID: plan}
	w.set(func(c *core) { c.refuse["plan.open"] = busy })
	if p := w.refused("POST", "/agent/run", runBody(""), nil, intents.SessionBusy, "/session_id"); p.PlanID != plan || p.Status != http.StatusConflict {
		t.Errorf("%+v", p)
	}
	resp := w.do(t.Context(), "POST", "/agent/run", runBody(""), http.Header{"Content-Type": {"application/json"}})
	if err := resp.Body.Close(); err != nil || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%v, %v", resp.Header, err)
	}
	joins := *busy
	joins.Pointer = "/intent/args/request"
	w.set(func(c *core) { c.refuse["plan.open"] = &joins })
	second := make(chan runReply)
	go func() {
		var got runReply
		w.call("POST", "/agent/run", runBody(""), nil, &got)
		second <- got
	}()
	close(release)
	first := <-ended
	for _, got := range []runReply{first, <-second} {
		if got.PlanID != plan || got.Response != "Two outlets." || got.TurnID != first.TurnID || got.SessionID != "s1" {
			t.Errorf("%+v", got)
		}
	}
	var late runReply
	if w.call("POST", "/agent/run", runBody(""), nil, &late); late.PlanID != plan || late.Response != "Two outlets." || late.Status != "complete" {
		t.Errorf("after its end: %+v", late)
	}
	if n := len(w.opened()); n != 5 {
		t.Errorf("%d requests", n)
	}
}
