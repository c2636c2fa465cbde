package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// fakeSkillCaller calls skills according to a script, and records the callers.
type fakeSkillCaller struct {
	mu      sync.Mutex
	skills  []catalog.Manifest
	does    func(ctx context.Context, c clientCall) (*intents.Answer, error)
	calls   []clientCall
	ended   chan string
	lines   []catalog.ReadLines
	lists   int
	reads   []catalog.ResourceRead
	answers func(catalog.ResourceRead) *intents.Answer // of reads
}

func (d *fakeSkillCaller) callSkill(ctx context.Context, _ actor, c clientCall) (*intents.Answer, error) {
	d.mu.Lock()
	d.calls = append(d.calls, c)
	does := d.does
	d.mu.Unlock()
	return does(ctx, c)
}

func (d *fakeSkillCaller) clientSkills(context.Context, actor) ([]catalog.Manifest, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lists++
	return slices.Clone(d.skills), nil
}

func (d *fakeSkillCaller) findSkills(_ context.Context, _ actor, _ string, q catalog.SkillFind) (*intents.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found catalog.SkillFindResult
	for _, m := range d.skills[:min(q.Limit, len(d.skills))] {
		found.Skills = append(found.Skills, catalog.SkillHit{Name: m.Name, Description: m.Description})
	}
	result, err := json.Marshal(found)
	return &intents.Answer{IntentID: heldID, Code: intents.OK, Outcome: &intents.Outcome{Status: intents.Done, Code: intents.OK, Result: result}}, err
}

func (d *fakeSkillCaller) endClient(_ context.Context, _ actor, session string) {
	d.ended <- session
}

func (d *fakeSkillCaller) clientLines(_ context.Context, _ actor, _ string, r catalog.ReadLines) (*intents.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, r)
	result, _ := json.Marshal(catalog.ReadLinesResult{Lines: []string{"one", "two"}})
	return &intents.Answer{IntentID: heldID, Code: intents.OK, Outcome: &intents.Outcome{Status: intents.Done, Code: intents.OK, Result: result}}, nil
}

func (d *fakeSkillCaller) readResource(_ context.Context, _ actor, _ string, args catalog.ResourceRead) (*intents.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads = append(d.reads, args)
	return d.answers(args), nil
}

func (d *fakeSkillCaller) called() []clientCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// gave is the answer of an executed intent.
func gave(output string) *intents.Answer {
	result, _ := json.Marshal(catalog.SkillCallResult{Output: json.RawMessage(output)})
	return &intents.Answer{IntentID: heldID, Receipt: "receipt", Code: intents.OK, Outcome: &intents.Outcome{Status: intents.Done, Code: intents.OK, Result: result}}
}

func always(a *intents.Answer) func(context.Context, clientCall) (*intents.Answer, error) {
	return func(context.Context, clientCall) (*intents.Answer, error) { return a, nil }
}

const ticketSchema = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`

var crmSkills = []catalog.Manifest{
	{Name: "crm.list", Endpoint: "crm", Description: "Lists tickets.", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Pure},
	{Name: "crm.close", Endpoint: "crm", Destructive: true, InputSchema: json.RawMessage(ticketSchema), OutputSchema: json.RawMessage(`{"type":"object","properties":{"t":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"object"}}}`), Effect: catalog.Once},
	{Name: "git.close", Endpoint: "git", Destructive: true, InputSchema: json.RawMessage(`{"anyOf":[{"type":"object"}]}`), OutputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"#/properties/y"}}}`), Effect: catalog.Idempotent},
}

// mcpWorld is a world with the skills of a help desk.
func mcpWorld(t *testing.T, manager script, change ...func(*Config, *pace)) (*world, *fakeSkillCaller) {
	t.Helper()
	w := newWorld(t, manager, change...)
	d := &fakeSkillCaller{ended: make(chan string, 1000), skills: crmSkills, does: always(gave(`{"n":1}`))}
	w.gateway.mcps.skills = d
	w.set(func(c *core) { c.pins, c.agents = []intents.Pin{{Skill: "crm.list"}}, []string{"shop"} })
	return w, d
}

// legacy is the protocol with sessions, which most clients speak.
var legacy = client.WithLegacyProtocolOnly() //nolint:staticcheck // clients that are deprecated are there

// eras are the two kinds of the protocol: with sessions, and without.
var eras = map[string]client.ClientOption{"legacy": legacy, "modern": client.WithProtocolVersion(wire.ProtocolVersion20260728)}

// mcpClient connects as ana.
func (w *world) mcpClient(options ...client.ClientOption) *client.Client {
	w.t.Helper()
	tr, err := transport.NewStreamableHTTP(w.http.URL+routeMCP, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + anaKey}))
	if err != nil {
		w.t.Fatal(err)
	}
	c := client.NewClient(tr, options...)
	w.t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if _, err := c.Initialize(w.t.Context(), wire.InitializeRequest{Params: wire.InitializeParams{ProtocolVersion: wire.ProtocolVersion20251125, ClientInfo: wire.Implementation{Name: "test", Version: "1"}}}); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// use calls a tool.
func (w *world) use(c *client.Client, name string, args any) *wire.CallToolResult {
	w.t.Helper()
	req := wire.CallToolRequest{Params: wire.CallToolParams{Name: name, Arguments: args}}
	r, err := c.CallTool(w.t.Context(), req)
	if err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	return r
}

// own returns the members of an answer that writ itself gave.
func own(t *testing.T, r *wire.CallToolResult) map[string]any {
	t.Helper()
	m, ok := r.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("no structured content: %+v", r)
	}
	return m
}

func TestMCPTools(t *testing.T) {
	for era, option := range eras {
		t.Run(era, func(t *testing.T) {
			w, d := mcpWorld(t, nil)
			c := w.mcpClient(option)
			list, err := c.ListTools(t.Context(), wire.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			tools := map[string]wire.Tool{}
			for _, one := range list.Tools {
				tools[one.Name] = one
			}
			want := []string{"ask_shop", "crm__close", "get_result", "git__close", "handle_message", "list", "read_lines", "run_task"}
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(tools))); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			hints := func(name string) [3]bool {
				a := tools[name].Annotations
				return [3]bool{*a.ReadOnlyHint, *a.IdempotentHint, *a.DestructiveHint}
			}
			got := map[string][3]bool{"list": hints("list"), "crm__close": hints("crm__close"), "git__close": hints("git__close")}
			if diff := cmp.Diff(map[string][3]bool{"list": {true, true, false}, "crm__close": {false, false, true}, "git__close": {false, true, true}}, got); diff != "" {
				t.Errorf("hints (-want +got):\n%s", diff)
			}
			if tools["list"].Description != "Lists tickets." || len(tools["crm__close"].InputSchema.Required) != 1 || tools["git__close"].OutputSchema.Type != "" || tools["git__close"].InputSchema.Type != "object" {
				t.Errorf("%+v", tools)
			}
			raw, _ := json.Marshal(tools["crm__close"])
			if !strings.Contains(string(raw), `"$defs":{"T"`) {
				t.Errorf("the output schema has lost its definitions: %s", raw)
			}

			r := w.use(c, "crm__close", map[string]any{"id": "t1"})
			if own(t, r)["n"] != 1.0 || r.IsError || r.Meta.AdditionalFields["aob.dev/intent_id"] != heldID || r.Meta.AdditionalFields["aob.dev/receipt"] != "receipt" {
				t.Errorf("%+v", r)
			}
			calls := d.called()
			if len(calls) != 1 || calls[0].Skill != "crm.close" || string(calls[0].Args) != `{"id":"t1"}` || !strings.HasPrefix(calls[0].Session, "mcp_") || calls[0].Request == "" {
				t.Errorf("%+v", calls)
			}
			if _, err := c.CallTool(t.Context(), wire.CallToolRequest{Params: wire.CallToolParams{Name: "nothing"}}); err == nil {
				t.Error("a tool that is not there was called")
			}
		})
	}
}

// The outcomes of a call, as a client sees them.
func TestMCPResults(t *testing.T) {
	w, d := mcpWorld(t, nil)
	c := w.mcpClient(legacy)
	ended := func(o intents.Outcome) *intents.Answer {
		return &intents.Answer{IntentID: heldID, Code: intents.OK, Outcome: &o}
	}
	large, _ := json.Marshal(catalog.SkillCallResult{Reference: &catalog.Reference{FileID: "f1", SizeBytes: 70_000, Sample: []string{"a"}}})
	hold := &intents.Answer{IntentID: heldID, Code: intents.ApprovalRequired, Decision: &intents.Decision{Hold: &intents.HoldTerms{Deadline: "2026-01-01T00:00:00Z"}}}
	for name, x := range map[string]struct {
		a     *intents.Answer
		err   error
		text  string
		error bool
		own   map[string]any
	}{
		"a text":    {a: gave(`"two\nlines"`), text: "two\nlines"},
		"an array":  {a: gave(`[1,2]`), text: "[1,2]"},
		"an object": {a: gave(`{"a":[1]}`), text: `{"a":[1]}`, own: map[string]any{"a": []any{1.0}}},
		"a large one": {a: ended(intents.Outcome{Status: intents.Done, Code: intents.OK, Result: large}), own: map[string]any{
			"status": "by_reference", "from": heldID, "size_bytes": 70000.0, "sample": []any{"a"},
		}},
		"a failure": {a: ended(intents.Outcome{Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "the skill reports a failure", Result: json.RawMessage(`{"error":"no ticket"}`)}), error: true, own: map[string]any{
			"status": "error", "code": "EXECUTOR_FAILED", "reason": "the skill reports a failure", "details": map[string]any{"error": "no ticket"}, "intent_id": heldID, "hint": intents.ExecutorFailed.Info().Hint,
		}},
		"a denial": {a: &intents.Answer{IntentID: heldID, Code: intents.PolicyDenied, Reason: "not at night", Hint: "wait"}, error: true, own: map[string]any{
			"status": "error", "code": "POLICY_DENIED", "reason": "not at night", "hint": "wait", "intent_id": heldID,
		}},
		"a refusal": {err: problem.New(intents.ConflictIdempotency, "/x", "other arguments"), error: true, own: map[string]any{
			"status": "error", "code": "CONFLICT_IDEMPOTENCY", "reason": "other arguments", "pointer": "/x", "hint": intents.ConflictIdempotency.Info().Hint,
		}},
		"a hold": {a: hold, own: map[string]any{
			"status": "held", "intent_id": heldID, "deadline": "2026-01-01T00:00:00Z", "url": w.http.URL + "/console/approvals/" + heldID,
		}},
		"in flight": {a: &intents.Answer{IntentID: heldID, Code: intents.InFlight}, own: map[string]any{"status": "running", "intent_id": heldID}},
	} {
		d.mu.Lock()
		d.does = func(context.Context, clientCall) (*intents.Answer, error) { return x.a, x.err }
		d.mu.Unlock()
		r := w.use(c, "list", nil)
		text, ok := r.Content[0].(wire.TextContent)
		if len(r.Content) != 1 || !ok || x.text != "" && text.Text != x.text || r.IsError != x.error {
			t.Errorf("%s: %+v", name, r)
		}
		got, _ := r.StructuredContent.(map[string]any)
		if diff := cmp.Diff(x.own, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if x.a != nil && r.Meta.AdditionalFields["aob.dev/intent_id"] != heldID {
			t.Errorf("%s: %+v", name, r.Meta)
		}
	}
}

// mcpPost sends one message.
func (w *world) mcpPost(body string, header http.Header) (answered, map[string]any) {
	w.t.Helper()
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	maps.Copy(h, header)
	resp := w.do(w.t.Context(), "POST", routeMCP, body, h)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var into map[string]any
	for line := range strings.Lines(string(raw)) {
		into = nil
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &into); err == nil && into["id"] != nil {
			break
		}
	}
	return answered{resp.StatusCode, resp.Header}, into
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func (w *world) mcpSession(header http.Header) http.Header {
	w.t.Helper()
	a, _ := w.mcpPost(initialize, header)
	out := maps.Clone(header)
	if out == nil {
		out = http.Header{}
	}
	out["Mcp-Session-Id"] = a.Header["Mcp-Session-Id"]
	if len(out["Mcp-Session-Id"]) != 1 {
		w.t.Fatalf("no session: %+v", a)
	}
	return out
}

// A session belongs to its caller, and ends by DELETE, when it is idle, or when there are too
// many.
func TestMCPSessions(t *testing.T) {
	w, d := mcpWorld(t, nil)
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	status := func(header http.Header, want int) {
		t.Helper()
		if a, got := w.mcpPost(list, header); a.StatusCode != want {
			t.Errorf("%v: %d %v, want %d", header, a.StatusCode, got, want)
		}
	}
	mine := w.mcpSession(nil)
	status(mine, 200)
	status(http.Header{}, 400)
	status(http.Header{"Mcp-Session-Id": {"mcp_other"}}, 404)
	bob := http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"bob"}}
	theirs := w.mcpSession(bob)
	status(theirs, 200)
	theirs["X-Api-Key"], theirs["X-User-Id"] = nil, nil
	theirs["X-Api-Key"] = []string{anaKey}
	status(theirs, 404)
	for _, method := range []string{"GET", "DELETE"} {
		if a := w.call(method, routeMCP, "", theirs, nil); a.StatusCode != 404 {
			t.Errorf("%s of another's session: %d", method, a.StatusCode)
		}
	}
	if a := w.call("DELETE", routeMCP, "", mine, nil); a.StatusCode != 200 {
		t.Errorf("%d", a.StatusCode)
	}
	status(mine, 404)
	if got := wait(t, "the end of a session", d.ended); got != mine["Mcp-Session-Id"][0] {
		t.Errorf("%s has ended", got)
	}

	oldest := w.mcpSession(nil)
	w.clock.advance(time.Second)
	var newest http.Header
	for range maxMCPSessions {
		newest = w.mcpSession(nil)
	}
	status(oldest, 404)
	status(newest, 200)
	w.clock.advance(2 * mcpIdle)
	w.gateway.mcps.tick(t.Context())
	status(newest, 404)
	for range maxMCPSessions + 1 { // and the callers' own
		wait(t, "the end of a session", d.ended)
	}
}

// TestMCPShares: a key that acts for many users takes places of its own, excludes nobody else,
// and is metered itself.
func TestMCPShares(t *testing.T) {
	w, _ := mcpWorld(t, nil, func(c *Config, _ *pace) { c.MCPRate = 60 })
	mine := w.mcpSession(nil)
	as := func(n int) http.Header {
		return http.Header{"X-Api-Key": {appKey}, "X-User-Id": {fmt.Sprint("user", n)}}
	}
	for n := range mcpShares.Key + 30 {
		w.clock.advance(time.Second)
		w.mcpSession(as(n))
	}
	w.gateway.mcps.mu.Lock()
	held := w.gateway.mcps.all.Len()
	w.gateway.mcps.mu.Unlock()
	if held != mcpShares.Key+1 {
		t.Errorf("%d callers are held", held)
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if a, got := w.mcpPost(list, mine); a.StatusCode != 200 {
		t.Errorf("another's session: %d %v", a.StatusCode, got)
	}
	limited := 0
	for n := range 2 * keyRates * 60 {
		if a, _ := w.mcpPost(initialize, as(n)); a.StatusCode == 429 {
			limited++
		}
	}
	if limited == 0 {
		t.Error("the key is not metered")
	}
}

// An unknown caller learns where to ask (RFC 9728).
func TestMCPUnauthorized(t *testing.T) {
	w, _ := mcpWorld(t, nil)
	a := w.refusedMCP("POST", http.Header{"X-Api-Key": nil}, intents.Unauthorized)
	at := strings.TrimSuffix(strings.TrimPrefix(a.Header.Get("WWW-Authenticate"), `Bearer resource_metadata="`), `"`)
	rest, ok := strings.CutPrefix(at, w.http.URL)
	if !ok {
		t.Fatalf("%q", a.Header)
	}
	var meta struct {
		Resource string   `json:"resource"`
		Methods  []string `json:"bearer_methods_supported"`
	}
	if got := w.call("GET", rest, "", nil, &meta); got.StatusCode != 200 || meta.Resource != w.http.URL+"/mcp" || len(meta.Methods) != 1 {
		t.Errorf("%d %+v", got.StatusCode, meta)
	}
	w.call("GET", rest, "", http.Header{"X-Forwarded-Proto": {"https"}}, &meta)
	if !strings.HasPrefix(meta.Resource, "https://") {
		t.Errorf("behind a proxy: %+v", meta)
	}
}

// refusedMCP checks that a request is answered with an error of JSON-RPC.
func (w *world) refusedMCP(method string, header http.Header, code intents.Code) answered {
	w.t.Helper()
	var got struct {
		JSONRPC string
		Error   struct {
			Code    int
			Message string
			Data    problem.Problem
		}
	}
	a := w.call(method, routeMCP, "{}", header, &got)
	if a.StatusCode != code.Info().Status || got.JSONRPC != "2.0" || got.Error.Code == 0 || got.Error.Data.Code != code || got.Error.Data.TraceID == "" {
		w.t.Errorf("%s: %d %+v", method, a.StatusCode, got)
	}
	return a
}

// Listening clients are notified when pins or agents change.
func TestMCPListChanged(t *testing.T) {
	for era := range eras {
		t.Run(era, func(t *testing.T) {
			w, d := mcpWorld(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var resp *http.Response
			if era == "legacy" {
				session := w.mcpSession(nil)
				session["Accept"] = []string{"text/event-stream"}
				resp = w.do(ctx, "GET", routeMCP, "", session)
			} else {
				resp = w.do(ctx, "POST", routeMCP, `{"jsonrpc":"2.0","id":"s1","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},
					"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
					http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}})
			}
			defer resp.Body.Close()
			defer cancel()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%d", resp.StatusCode)
			}
			for range 2 {
				w.gateway.mcps.tick(t.Context())
			}
			lists := func() int {
				d.mu.Lock()
				defer d.mu.Unlock()
				return d.lists
			}
			if n := lists(); n != 1 {
				t.Errorf("%d lists although nothing has changed", n)
			}
			w.set(func(c *core) { c.pins = nil })
			w.gateway.mcps.tick(t.Context())
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() && !strings.Contains(lines.Text(), wire.MethodNotificationToolsListChanged) {
			}
			if lines.Err() != nil || lists() != 2 {
				t.Errorf("the stream has ended: %v; %d lists", lines.Err(), lists())
			}
		})
	}
}

// While a call runs its client gets progress; a cancelled call is no longer awaited.
func TestMCPProgressAndCancel(t *testing.T) {
	w, d := mcpWorld(t, nil, func(_ *Config, p *pace) { p.working = 5 * time.Millisecond })
	c := w.mcpClient(legacy)
	told, goOn := make(chan struct{}), make(chan struct{})
	tell := sync.OnceFunc(func() { close(told) })
	c.OnNotification(func(n wire.JSONRPCNotification) {
		if n.Method == string(wire.MethodNotificationProgress) && n.Params.AdditionalFields["progressToken"] == "p1" {
			tell()
		}
	})
	d.does = func(context.Context, clientCall) (*intents.Answer, error) {
		<-goOn
		return gave(`"done"`), nil
	}
	go func() {
		<-told
		close(goOn)
	}()
	req := wire.CallToolRequest{Params: wire.CallToolParams{Name: "list", Meta: &wire.Meta{ProgressToken: "p1"}}}
	if r, err := c.CallTool(t.Context(), req); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}

	began, left := make(chan struct{}), make(chan struct{})
	d.mu.Lock()
	d.does = func(ctx context.Context, _ clientCall) (*intents.Answer, error) {
		close(began)
		<-ctx.Done()
		close(left)
		return nil, ctx.Err()
	}
	d.mu.Unlock()
	session := w.mcpSession(nil)
	asJSON := maps.Clone(session)
	asJSON["Content-Type"] = []string{"application/json"}
	var cancelling sync.WaitGroup
	defer cancelling.Wait()
	cancelling.Go(func() {
		<-began
		for range 2 { // the second has nothing new
			resp := w.do(context.WithoutCancel(t.Context()), "POST", routeMCP, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, asJSON)
			if resp.StatusCode != http.StatusAccepted {
				t.Errorf("cancelled: %d", resp.StatusCode)
			}
			_ = resp.Body.Close()
		}
	})
	a, got := w.mcpPost(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list"}}`, session)
	wait(t, "the end of the call", left)
	result, _ := got["result"].(map[string]any)
	said, _ := result["structuredContent"].(map[string]any)
	if a.StatusCode != 200 || said["code"] != "IN_FLIGHT" {
		t.Errorf("%d %v", a.StatusCode, got)
	}
}

// The person at the client may approve in place.
func TestMCPElicitation(t *testing.T) {
	for era, option := range eras {
		for _, decision := range []string{"approve", "decline"} {
			t.Run(era+" "+decision, func(t *testing.T) {
				w, d := mcpWorld(t, nil)
				d.does = always(&intents.Answer{IntentID: heldID, Code: intents.ApprovalRequired, Decision: &intents.Decision{Hold: &intents.HoldTerms{Deadline: "2026-01-01T00:00:00Z"}}})
				w.gateway.router = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/v1/intents/"+heldID {
						w.core.ServeHTTP(rw, r)
						return
					}
					_, _ = rw.Write(marshal(t, gave(`{"closed":true}`)))
				})
				asked := 0
				c := w.mcpClient(option, client.WithElicitationHandler(elicited(func(p wire.ElicitationParams) *wire.ElicitationResult {
					asked++
					if !strings.Contains(p.Message, "skill.call") {
						t.Errorf("asked %q", p.Message)
					}
					out := &wire.ElicitationResult{}
					out.Action = wire.ElicitationResponseActionDecline
					if decision == "approve" {
						out.Action, out.Content = wire.ElicitationResponseActionAccept, map[string]any{"decision": "approve"}
					}
					return out
				})))
				r := w.use(c, "crm__close", map[string]any{"id": "t1"})
				approvals := len(w.submits(typeApprove))
				switch decision {
				case "approve":
					if asked != 1 || approvals != 1 || own(t, r)["closed"] != true || len(d.called()) != 1 {
						t.Errorf("asked %d, approved %d: %+v", asked, approvals, r)
					}
				default:
					if asked != 1 || approvals != 0 || own(t, r)["status"] != "held" {
						t.Errorf("asked %d, approved %d: %+v", asked, approvals, r)
					}
				}
			})
		}
	}
}

// TestMCPElicitationShowsAll: the user sees the skill first and every argument; a call that is
// too long to be shown is not put to the user there.
func TestMCPElicitationShowsAll(t *testing.T) {
	for size, want := range map[int]int{10: 1, 4 << 10: 1, 20 << 10: 0} {
		w, d := mcpWorld(t, nil)
		d.does = always(&intents.Answer{IntentID: heldID, Code: intents.ApprovalRequired, Decision: &intents.Decision{Hold: &intents.HoldTerms{Deadline: "2026-01-01T00:00:00Z"}}})
		w.core.heldArgs = fmt.Sprintf(`{"input":{"a":"%s","z":"all\u2800of\u202eit"},"skill":"crm.drop"}`, strings.Repeat("x", size))
		asked := 0
		c := w.mcpClient(legacy, client.WithElicitationHandler(elicited(func(p wire.ElicitationParams) *wire.ElicitationResult {
			asked++
			if skill, args := strings.Index(p.Message, "skill     crm.drop\n"), strings.Index(p.Message, "args "); skill < 0 || skill > args || !strings.Contains(p.Message, `all\u2800of\u202eit`) {
				t.Errorf("%d: asked %q", size, p.Message)
			}
			return &wire.ElicitationResult{ElicitationResponse: wire.ElicitationResponse{Action: wire.ElicitationResponseActionDecline}}
		})))
		if r := w.use(c, "crm__close", map[string]any{"id": "t1"}); asked != want || own(t, r)["status"] != "held" || !strings.Contains(fmt.Sprint(own(t, r)["url"]), heldID) {
			t.Errorf("%d: asked %d: %+v", size, asked, r)
		}
	}
}

type elicited func(wire.ElicitationParams) *wire.ElicitationResult

func (f elicited) Elicit(_ context.Context, r wire.ElicitationRequest) (*wire.ElicitationResult, error) {
	return f(r.Params), nil
}

// run_task and ask_<agent> are turns; the same request again is the same turn.
func TestMCPTurns(t *testing.T) {
	var w *world
	w, _ = mcpWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		plan, _ := w.plan(h.PlanID)
		say(bus.FrameAnswer, bus.AnswerData{Response: "answer to " + plan.Task})
		say(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: string(catalog.PlanComplete)})
	})
	c := w.mcpClient(legacy)
	for tool, agent := range map[string]string{"run_task": "", "ask_shop": "shop"} {
		r := w.use(c, tool, map[string]any{"task": "count " + tool})
		text, _ := r.Content[0].(wire.TextContent)
		if text.Text != "answer to count "+tool || r.IsError || r.Meta.AdditionalFields["aob.dev/plan_id"] == nil {
			t.Errorf("%+v", r)
		}
		opened := w.submits("plan.open")
		var a catalog.PlanOpen
		if err := json.Unmarshal(opened[len(opened)-1].Args(), &a); err != nil || a.Agent != agent || a.Request == nil {
			t.Errorf("%s: %+v, %v", tool, a, err)
		}
	}
	if r := w.use(c, "run_task", map[string]any{"task": ""}); !r.IsError || own(t, r)["pointer"] != "/task" {
		t.Errorf("%+v", r)
	}
	if r := w.use(c, "run_task", map[string]any{"tsk": "x"}); !r.IsError || own(t, r)["code"] != "MALFORMED_ARGS" {
		t.Errorf("%+v", r)
	}
}

// Excess requests of a client are refused so that a model understands it.
func TestMCPRate(t *testing.T) {
	w, d := mcpWorld(t, nil, func(c *Config, _ *pace) { c.MCPRate = 3 })
	session := w.mcpSession(nil)
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list"}}`
	for range 2 {
		if _, got := w.mcpPost(call, session); got["result"] == nil {
			t.Fatalf("%v", got)
		}
	}
	_, got := w.mcpPost(call, session)
	result, _ := got["result"].(map[string]any)
	said, _ := result["structuredContent"].(map[string]any)
	if said["code"] != "RATE_LIMITED" || said["retry_after_sec"] == nil || len(d.called()) != 2 {
		t.Errorf("%v", got)
	}
	if a, _ := w.mcpPost(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, session); a.StatusCode != 429 || a.Header.Get("Retry-After") == "" {
		t.Errorf("%+v", a)
	}
	w.clock.advance(mcpWindow)
	if a, _ := w.mcpPost(call, session); a.StatusCode != 200 {
		t.Errorf("after a minute: %d", a.StatusCode)
	}
}

// TestMCPRoles: tools are called under roles that were asked for at most keyLife ago; whoever lists them
// is looked up.
func TestMCPRoles(t *testing.T) {
	w, d := mcpWorld(t, nil)
	session := w.mcpSession(nil)
	post := func(method string) int {
		a, _ := w.mcpPost(`{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":{"name":"list"}}`, session)
		return a.StatusCode
	}
	if status := post("tools/call"); status != 200 {
		t.Fatal(status)
	}
	w.set(func(c *core) { c.users["ana"] = bus.UserReply{Disabled: true} })
	if status := post("tools/call"); status != 200 || len(d.called()) != 2 {
		t.Errorf("a moment later: %d", status) // the router refuses it
	}
	if status := post("tools/list"); status != 403 {
		t.Errorf("a list: %d", status)
	}
	w.clock.advance(keyLife)
	if status := post("tools/call"); status != 403 || len(d.called()) != 2 {
		t.Errorf("after %v: %d", keyLife, status)
	}
}

// TestMCPOneID: a client that uses one id for all of its requests makes a call with each.
// Idempotency-Key, or the key in _meta, marks a repeated call.
func TestMCPOneID(t *testing.T) {
	w, d := mcpWorld(t, nil)
	session := w.mcpSession(nil)
	key := maps.Clone(session)
	key["Idempotency-Key"] = []string{"k1"}
	for _, x := range []struct {
		n      int
		header http.Header
	}{{1, session}, {2, session}, {2, session}, {1, key}, {1, key}} {
		call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{"n":%d}}}`, x.n)
		if _, got := w.mcpPost(call, x.header); got["result"] == nil {
			t.Fatalf("%v", got)
		}
	}
	for range 2 { // the same key in _meta, by a client that sets no headers
		if _, got := w.mcpPost(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{"n":1},"_meta":{"aob.dev/idempotency_key":"k1"}}}`, session); got["result"] == nil {
			t.Fatalf("%v", got)
		}
	}
	calls, names := d.called(), map[string]bool{}
	for _, c := range calls {
		names[c.Request] = true
	}
	if len(calls) != 7 || len(names) != 4 || calls[3].Request != calls[4].Request || calls[5].Request != calls[3].Request || calls[6].Request != calls[3].Request {
		t.Errorf("%d calls have %d names: %+v", len(calls), len(names), calls)
	}
}

// Invalid protocol data is answered, and calls nothing.
func TestMCPBadInput(t *testing.T) {
	w, d := mcpWorld(t, nil)
	session := w.mcpSession(nil)
	with := func(name, value string) http.Header {
		h := maps.Clone(session)
		h[http.CanonicalHeaderKey(name)] = []string{value}
		return h
	}
	const args = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list","arguments":`
	for name, x := range map[string]struct {
		body   string
		header http.Header
		status int
	}{
		"nothing":                    {``, session, 400},
		"no JSON":                    {`{`, session, 400},
		"a batch":                    {`[` + initialize + `]`, session, 404},
		"a member twice":             {`{"jsonrpc":"2.0","id":2,"id":3,"method":"tools/call","params":{"name":"list"}}`, session, 400},
		"an endless id":              {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"tools/list"}`, session, 400},
		"an object for an id":        {`{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call","params":{"name":"list"}}`, session, 400},
		"a list for an id":           {`{"jsonrpc":"2.0","id":[1],"method":"tools/call","params":{"name":"list"}}`, session, 400},
		"a truth for an id":          {`{"jsonrpc":"2.0","id":true,"method":"tools/call","params":{"name":"list"}}`, session, 400},
		"an unknown method":          {`{"jsonrpc":"2.0","id":2,"method":"tools/destroy"}`, session, 200},
		"another version of RPC":     {`{"jsonrpc":"1.0","id":2,"method":"tools/list"}`, session, 200},
		"the new protocol in part":   {args + `{}}}`, with(wire.HeaderProtocolVersion, wire.ProtocolVersion20260728), 400},
		"a state that we never sent": {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list","requestState":"x"}}`, session, 200},
	} {
		a, got := w.mcpPost(x.body, x.header)
		result, _ := got["result"].(map[string]any)
		if a.StatusCode != x.status && !(x.status == 404 && a.StatusCode == 400) || got["error"] == nil && result["isError"] != true {
			t.Errorf("%s: %d %v", name, a.StatusCode, got)
		}
	}
	if n := len(d.called()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// The tools of a server that was down appear once it answers, and are not requested all the time.
func TestMCPToolsOfAServerThatWasDown(t *testing.T) {
	w, d := mcpWorld(t, nil)
	d.skills = crmSkills[:1]
	w.set(func(c *core) { c.pins = []intents.Pin{{Skill: "crm.list"}, {Skill: "crm.close"}, {Skill: "git.close"}} })
	c := w.mcpClient(legacy)
	skills := func() (n int) {
		t.Helper()
		list, err := c.ListTools(t.Context(), wire.ListToolsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list.Tools {
			if one.Name == "list" || strings.HasSuffix(one.Name, "close") {
				n++
			}
		}
		return n
	}
	d.mu.Lock()
	d.skills = crmSkills
	d.mu.Unlock()
	if n := skills(); n != 1 || d.lists != 1 {
		t.Errorf("%d skills, loaded %d times", n, d.lists)
	}
	w.clock.advance(mcpRetry)
	if n := skills(); n != 3 || d.lists != 2 {
		t.Errorf("%d skills, loaded %d times", n, d.lists)
	}
}

// A large result is read by its intent_id, and nothing else is.
func TestMCPReadLines(t *testing.T) {
	w, d := mcpWorld(t, nil)
	large, _ := json.Marshal(catalog.SkillCallResult{Reference: &catalog.Reference{FileID: "f1", SizeBytes: 70_000, Sample: []string{"a"}}})
	answer := intents.Answer{IntentID: heldID, Code: intents.OK, Outcome: &intents.Outcome{Status: intents.Done, Code: intents.OK, Result: large}}
	w.gateway.router = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, "/v1/intents/"):
			w.core.ServeHTTP(rw, r)
			return
		case !strings.HasSuffix(r.URL.Path, heldID):
			problem.New(intents.NotFound, "", "no such intent").Write(rw)
			return
		}
		_, _ = rw.Write(marshal(t, answer))
	})
	c := w.mcpClient(legacy)
	args := map[string]any{"from": heldID, "start": 2, "n": 2}
	if r := w.use(c, "read_lines", args); r.IsError || !strings.Contains(string(marshal(t, r.StructuredContent)), `"one","two"`) {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]catalog.ReadLines{{FileID: "f1", Start: 2, N: 2}}, d.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	answer = *gave(`{"n":1}`)
	if r := w.use(c, "read_lines", args); !r.IsError || own(t, r)["pointer"] != "/from" {
		t.Errorf("%+v", r)
	}
	for _, id := range []string{"x", intents.Digest([]byte("another"))} {
		if r := w.use(c, "get_result", map[string]any{"intent_id": id}); !r.IsError || own(t, r)["code"] != "NOT_FOUND" {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if r := w.use(c, "get_result", map[string]any{"intent_id": heldID}); own(t, r)["n"] != 1.0 {
		t.Errorf("%+v", r)
	}
}
