package oauth_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/oauth"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/sealed"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/internal/testing/oauthtest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// bench is the executor of skills with one server, whose tools it finds under "notes".
type bench struct {
	*executortest.Executor
	t        *testing.T
	issuer   *oauthtest.Issuer
	server   *oauthtest.Server
	docs     storage.Documents
	registry *skills.Registry
	box      sealed.Box
	log      *bytes.Buffer
	fails    atomic.Bool // the store does not remove anything

	mu  sync.Mutex // guards now and log
	now time.Time
}

const redirect = "http://127.0.0.1:1/console/connected"

func open(t *testing.T, set mcp.OAuth) *bench {
	t.Helper()
	b := &bench{t: t, issuer: oauthtest.NewIssuer(t), log: &bytes.Buffer{}, now: time.Now()}
	b.server = oauthtest.NewServer(t, b.issuer)
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), storage.NewCheck(storage.DefaultDimension), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.docs = failing{docs, &b.fails}
	if b.box, err = sealed.NewBox(secret, catalog.LinkUse); err != nil {
		t.Fatal(err)
	}
	if set.Mode == mcp.AuthExchange {
		set.Issuer = b.issuer.URL
	}
	t.Cleanup(func() {
		if err := docs.Close(); err != nil {
			t.Error(err)
		}
	})
	b.start(set)
	return b
}

var secret = []byte("the secret of links, of 32 bytes")

// start starts a process with the store of the bench.
func (b *bench) start(set mcp.OAuth) {
	t := b.t
	t.Helper()
	registry := skills.NewRegistry(t.Context(), b.clock)
	b.registry = registry
	cache := skills.NewCache(b.clock)
	log := slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := oauth.New(oauth.Config{
		Documents: b.docs, Secret: secret, Hosts: []string{"127.0.0.1"}, Base: func() string { return "http://127.0.0.1:1" }, Now: b.clock, Log: log,
		Changed: func(who intents.Principal, server string, _ bool) {
			registry.Forget(who, server)
			cache.Forget(who, server)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	source := mcp.Source{URL: b.server.Resource(), Settings: mcp.Settings{Name: "notes", OAuth: set}}
	c.Add("notes", source)
	dial := func(ctx context.Context, who intents.Principal) (skills.Server, error) {
		access, err := c.Open(ctx, "notes", who)
		if err != nil {
			return nil, err
		}
		source := source
		source.OAuth.Issuer = access.Issuer
		client, err := mcp.Dial(ctx, source, mcp.Options{RoundTripper: access.RoundTripper, Hide: access.Hide, Log: log, Retries: -1})
		if err != nil {
			return nil, err
		}
		return client, nil
	}
	terms := skills.Terms{Renews: true}
	if set.PerUser() {
		err = b.registry.AddForUsers("notes", terms, dial)
	} else {
		err = b.registry.Add("notes", terms, func(ctx context.Context) (skills.Server, error) { return dial(ctx, intents.Principal{}) })
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Executor = executortest.New(t, skills.Name, b.clock, skills.Handlers(skills.Config{Registry: b.registry, Cache: cache, Now: b.clock, Log: log, Connections: c.Handlers()}))
}

// Write implements io.Writer for the log.
func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func who(user string) intents.Principal { return intents.Principal{Tenant: "acme", UserID: user} }

// do sends an intent of a user.
func (b *bench) do(user, typ string, args any, ticket intents.Ticket) intents.Report {
	b.t.Helper()
	ticket.Actor = who(user)
	return b.Do(b.t, executortest.Intent{Type: typ, NoScope: true, Args: args, Ticket: ticket})
}

// pins approves the tools as the server declares them now to ana.
func (b *bench) pins() (out []intents.Pin) {
	b.t.Helper()
	found, err := b.registry.Skills(b.t.Context(), who("ana"))
	if err != nil || len(found) != 2 {
		b.t.Fatalf("%d skills, error = %v", len(found), err)
	}
	for _, s := range found {
		effect := catalog.Once
		if s.Name == "whoami" {
			effect = catalog.Pure
		}
		out = append(out, intents.Pin{Skill: s.ID(), Digest: s.Digest(), Effect: string(effect), Shared: true, CacheSeconds: 0})
	}
	return out
}

// call calls a tool.
func (b *bench) call(user, tool, input string, pins []intents.Pin) intents.Report {
	b.t.Helper()
	return b.do(user, "skill.call", catalog.SkillCall{Skill: "notes." + tool, Input: json.RawMessage(input)}, intents.Ticket{Pins: pins})
}

// says checks the output of a call.
func (b *bench) says(r intents.Report, want string) {
	b.t.Helper()
	var got catalog.SkillCallResult
	if err := json.Unmarshal(r.Result, &got); err != nil || string(got.Output) != `"`+want+`"` {
		b.t.Errorf("the answer is %s %s %s, not %q", r.Code, r.Reason, r.Result, want)
	}
}

// refused checks a refusal with a link, and returns the token of it.
func (b *bench) refused(r intents.Report) string {
	b.t.Helper()
	details := map[string]string{}
	_ = json.Unmarshal(r.Result, &details)
	_, token, ok := strings.Cut(details[catalog.ConnectDetail], catalog.ConnectPage)
	if r.Code != intents.MalformedArgs || !ok || !strings.Contains(r.Reason, "writ skill connect notes") {
		b.t.Fatalf("not refused with a link: %s %s %s", r.Code, r.Reason, r.Result)
	}
	return token
}

// link is one for ana.
func (b *bench) link() string {
	b.t.Helper()
	return b.seal(catalog.ConnectLink{Tenant: "acme", User: "ana", Server: "notes", Nonce: rand.Text(), Until: b.clock().Add(catalog.ConnectLife)}, catalog.SealedLink)
}

func (b *bench) seal(v any, about string) string {
	b.t.Helper()
	text, err := b.box.Seal(v, about)
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// begin begins a connection, and goes to the authorization server with an account.
func (b *bench) begin(user, account, link string, absent bool) catalog.ConnectAnswer {
	b.t.Helper()
	r := b.do(user, "skill.connect", catalog.SkillConnect{Link: link, RedirectURI: redirect, Absent: absent}, intents.Ticket{})
	var out catalog.SkillConnectResult
	if err := json.Unmarshal(r.Result, &out); err != nil || out.AuthorizationURL == "" {
		b.t.Fatalf("begin: %s %s", r.Code, r.Reason)
	}
	b.issuer.As(account)
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, strings.Replace(out.AuthorizationURL, "response_type", "state=x&response_type", 1), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		b.t.Fatalf("HTTP %d from %s: %v", resp.StatusCode, out.AuthorizationURL, err)
	}
	var a catalog.ConnectAnswer
	if err := b.box.Open(link, &a.ConnectLink, catalog.SealedLink); err != nil {
		b.t.Fatal(err)
	}
	a.Code, a.Issuer = back.Query().Get("code"), back.Query().Get("iss")
	return a
}

func (b *bench) end(user string, a catalog.ConnectAnswer) intents.Report {
	b.t.Helper()
	return b.do(user, "skill.connect", catalog.SkillConnect{Answer: b.seal(a, catalog.SealedAnswer)}, intents.Ticket{})
}

// connect connects a user with an account.
func (b *bench) connect(user, account, link string) {
	b.t.Helper()
	if r := b.end(user, b.begin(user, account, link, false)); r.Code != intents.OK {
		b.t.Fatalf("connect %s: %s %s", user, r.Code, r.Reason)
	}
}

// hidden checks that nothing secret is in the store, in the log, or in a report.
func (b *bench) hidden(reports ...intents.Report) {
	b.t.Helper()
	all := &bytes.Buffer{}
	page, err := b.docs.Search(b.t.Context(), "acme", storage.IndexConnections, storage.Query{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, d := range page.Documents {
		all.Write(d.Body)
	}
	b.mu.Lock()
	all.Write(b.log.Bytes())
	b.mu.Unlock()
	raw, err := json.Marshal(reports)
	if err != nil {
		b.t.Fatal(err)
	}
	all.Write(raw)
	for _, secret := range b.issuer.Issued() {
		if bytes.Contains(all.Bytes(), []byte(secret)) {
			b.t.Errorf("%s... can be read", secret[:6])
		}
	}
}

// TestOwnClient: writ's own client has one token, which is asked for anew when it has ended or is refused.
func TestOwnClient(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthClient, ClientID: "writ", ClientSecret: "hush-hush"})
	pins := b.pins()
	b.says(b.call("ana", "whoami", `{}`, pins), "writ")
	b.issuer.Expire()
	b.says(b.call("ben", "note", `{}`, pins), "writ")
	if n := b.issuer.Asked("client_credentials"); n != 2 {
		t.Errorf("%d tokens were asked for", n)
	}
	r := b.call("ben", "note", `{"echo":true}`, pins)
	b.says(r, "writ by (secret)")
	b.hidden(r)
}

// TestUsers: two users reach one server, each under an account of their own, and share nothing.
func TestUsers(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthUser})
	b.connect("ana", "ana@notes", b.link())
	pins := b.pins()
	pins[0].CacheSeconds = 60
	b.says(b.call("ana", "whoami", `{}`, pins), "ana@notes")
	link := b.refused(b.call("ben", "whoami", `{}`, pins))
	b.refused(b.call("ben", "note", `{}`, pins))
	b.connect("ben", "ben@notes", link)
	for range 2 {
		b.says(b.call("ana", "whoami", `{}`, pins), "ana@notes")
		b.says(b.call("ben", "whoami", `{}`, pins), "ben@notes")
		b.says(b.call("ben", "note", `{}`, pins), "ben@notes")
		b.says(b.call("ana", "note", `{}`, pins), "ana@notes")
	}
	b.connect("ana", "other@notes", b.link())
	b.says(b.call("ana", "whoami", `{}`, pins), "other@notes") // not the kept answer
	if b.server.Crossed() {
		t.Error("two accounts used one session")
	}
	b.hidden(b.call("ana", "note", `{"echo":true}`, pins))
}

// TestConnectRefused: whatever a link or an answer is not good for.
func TestConnectRefused(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthUser})
	refused := func(what string, r intents.Report, reason string) {
		t.Helper()
		if r.Code == intents.OK || !strings.Contains(r.Reason, reason) {
			t.Errorf("%s: %s %s", what, r.Code, r.Reason)
		}
	}
	show := func(user, link string) intents.Report {
		return b.do(user, "skill.connect", catalog.SkillConnect{Link: link}, intents.Ticket{})
	}
	ana := b.link()
	var shown catalog.SkillConnectResult
	if r := show("ana", ana); json.Unmarshal(r.Result, &shown) != nil || shown.Issuer != b.issuer.URL || shown.Scopes[0] != "notes" || shown.Connected || shown.AuthorizationURL != "" {
		t.Errorf("shown: %+v", shown)
	}
	refused("a link sent to another user", show("ben", ana), "for another user")
	refused("a forged link", show("ana", ana[:len(ana)-2]+"AA"), "none of this writ")
	refused("an answer as a link", show("ana", b.seal(catalog.ConnectAnswer{}, catalog.SealedAnswer)), "none of this writ")
	answer := b.begin("ana", "ana@notes", ana, false)
	refused("a link used before", show("ana", ana), "used before")
	refused("an answer of another user", b.end("ben", answer), "for another user")
	mixed := answer
	mixed.Issuer = "https://elsewhere.example"
	refused("a mixed-up issuer", b.end("ana", mixed), "not of the authorization server")
	mixed.Issuer = ""
	refused("an issuer that does not name itself", b.end("ana", mixed), "not of the authorization server")
	if r := b.end("ana", answer); r.Code != intents.OK {
		t.Fatalf("%s %s", r.Code, r.Reason)
	}
	refused("a code used again", b.end("ana", answer), "was not begun, or has ended")
	late := b.link()
	b.advance(catalog.ConnectLife)
	refused("a lapsed link", show("ana", late), "has lapsed")
	refused("no such server", show("ana", b.seal(catalog.ConnectLink{Tenant: "acme", User: "ana", Server: "other", Until: b.clock().Add(time.Minute)}, catalog.SealedLink)), "no skill server other")
}

// TestDisconnect: the connection is gone, and so are the tokens.
func TestDisconnect(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthUser})
	b.connect("ana", "ana@notes", b.link())
	pins := b.pins()
	for _, want := range []string{`{"removed":true,"revoked":true}`, `{"removed":false,"revoked":false}`} {
		if r := b.do("admin", catalog.TypeSkillDisconnect, catalog.SkillDisconnect{Server: "notes", UserID: "ana"}, intents.Ticket{}); string(r.Result) != want {
			t.Errorf("disconnect: %s %s %s", r.Code, r.Reason, r.Result)
		}
	}
	b.refused(b.call("ana", "note", `{}`, pins))
	for _, secret := range b.issuer.Issued() {
		if b.issuer.Account(secret, b.server.Resource()) != "" {
			t.Error("a token is still good")
		}
	}
}

// TestDisconnectAll: all connections of a user end, of whatever servers. If the store fails in between, they are
// ended again. An authorization server that does not agree keeps none of them.
func TestDisconnectAll(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthUser})
	all := func(by, tenant string) intents.Report {
		actor := who(by)
		if by == "admin" {
			actor.Tenant = "system"
		}
		return b.Do(t, executortest.Intent{Type: catalog.TypeSkillDisconnect, NoScope: true, Args: catalog.SkillDisconnect{Tenant: tenant, UserID: "ana"}, Ticket: intents.Ticket{Actor: actor}})
	}
	b.connect("ben", "ben@notes", b.seal(catalog.ConnectLink{Tenant: "acme", User: "ben", Server: "notes", Nonce: rand.Text(), Until: b.clock().Add(time.Minute)}, catalog.SealedLink))
	var pins []intents.Pin
	for _, status := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		b.issuer.Revokes(status)
		b.connect("ana", "ana@notes", b.link())
		pins = b.pins()
		asked := b.issuer.Asked("revoke")
		b.fails.Store(true)
		if r := all("admin", "acme"); r.Code == intents.OK || !r.Retryable {
			t.Errorf("the store fails: %s %s", r.Code, r.Reason)
		}
		b.fails.Store(false)
		want := fmt.Sprintf(`{"removed":true,"revoked":%v,"connections":[{"server":"notes","revoked":%[1]v}]}`, status == http.StatusOK)
		if r := all("admin", "acme"); string(r.Result) != want || b.issuer.Asked("revoke") != asked+2 {
			t.Errorf("%s %s, asked %d times: %s", r.Code, r.Reason, b.issuer.Asked("revoke")-asked, r.Result)
		}
		if r := all("admin", "acme"); string(r.Result) != `{"removed":false,"revoked":false}` {
			t.Errorf("again: %s", r.Result)
		}
	}
	if r := all("ben", "other"); r.Code != intents.RBACForbidden {
		t.Errorf("of another tenant: %s %s", r.Code, r.Result)
	}
	b.says(b.call("ben", "note", `{}`, pins), "ben@notes")
}

// failing is a store that removes nothing while it fails.
type failing struct {
	storage.Documents
	fails *atomic.Bool
}

func (f failing) Delete(ctx context.Context, tenant, index, id string) error {
	if f.fails.Load() {
		return storage.ErrUnavailable
	}
	return f.Documents.Delete(ctx, tenant, index, id)
}

// TestAbsent: a schedule uses a connection only if its user has allowed that.
func TestAbsent(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthUser})
	b.connect("ana", "ana@notes", b.link())
	pins := b.pins()
	scheduled := func() intents.Report {
		actor := who("ana")
		actor.Session = "sched_0123456789abcdef"
		return b.Do(t, executortest.Intent{Type: "skill.call", NoScope: true, Args: catalog.SkillCall{Skill: "notes.note"}, Ticket: intents.Ticket{Actor: actor, Pins: pins}})
	}
	b.refused(scheduled())
	b.advance(time.Second)
	if r := b.end("ana", b.begin("ana", "ana@notes", b.link(), true)); r.Code != intents.OK {
		t.Fatalf("%s %s", r.Code, r.Reason)
	}
	b.says(scheduled(), "ana@notes")
}

// TestIssuerChanges: a server that names another issuer gets no token of the first one, and each of its tools is
// another version.
func TestIssuerChanges(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthUser})
	b.connect("ana", "ana@notes", b.link())
	pins := b.pins()
	other := oauthtest.NewIssuer(t)
	b.server.Move(other)
	if r := b.call("ana", "note", `{}`, pins); r.Code == intents.OK {
		t.Errorf("%s", r.Result)
	}
	b.advance(10 * time.Minute)
	b.refused(b.call("ana", "note", `{}`, pins))
	b.issuer = other
	b.connect("ana", "ana@other", b.link())
	if r := b.call("ana", "note", `{}`, pins); !strings.Contains(r.Reason, "manifest changed") {
		t.Errorf("%s %s %s", r.Code, r.Reason, r.Result)
	}
	b.says(b.call("ana", "note", `{}`, b.pins()), "ana@other")
}

// TestExchange: the user's token of the issuer is exchanged for one of the server.
func TestExchange(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthExchange, ClientID: "writ"})
	b.connect("ana", "ana@idp", b.link())
	pins := b.pins()
	b.says(b.call("ana", "note", `{}`, pins), "ana@idp exchanged")
	b.issuer.Expire()
	b.advance(2 * time.Hour)
	b.says(b.call("ana", "note", `{}`, pins), "ana@idp exchanged")
	b.hidden()
}
