package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// mcpSession begins a session as a client of before 2026-07-28 does, and gives its id.
func (s *system) mcpSession(who person, headers ...string) string {
	s.t.Helper()
	_, header, _ := s.knock(who, http.MethodPost, "/mcp", map[string]any{"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "t", "version": "1"},
	}}, append(headers, "Accept", "application/json, text/event-stream")...)
	return header.Get("Mcp-Session-Id")
}

// rpc sends a message of JSON-RPC in a session.
func (s *system) rpc(who person, session string, message any, headers ...string) (status int, text string) {
	s.t.Helper()
	who.session = ""
	status, _, text = s.knock(who, http.MethodPost, "/mcp", message, append([]string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", session}, headers...)...)
	return status, text
}

func rpcOf(id any, method string, params any) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}
}

// TestRedTeamMCP: an MCP client has its own sessions, its tenant's tools and its own documents,
// whatever it names; and no page of a browser has any.
func TestRedTeamMCP(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	w.addTenant("acme")
	ana, bob, eve := w.addPerson("default", "ana", "user"), w.addPerson("default", "bob", "user"), w.addPerson("acme", "eve", "user", "admin")
	toPay := map[string]any{"name": toolOf(pay), "arguments": map[string]string{"region": "eu"}}
	hers := w.mcpSession(ana)
	if status, text := w.rpc(ana, hers, rpcOf(1, "tools/list", nil)); status != http.StatusOK || !strings.Contains(text, toolOf(pay)) {
		t.Fatalf("HTTP %d %s", status, text)
	}
	works := func() string { // an id again would be the same call
		return w.calls(pay, func() { w.rpc(ana, hers, rpcOf(catalog.RandomKey(), "tools/call", toPay)) })
	}
	if works() == "" {
		t.Fatal("her own call is not made: the attempts show nothing")
	}
	w.othersSessions(hers, map[string]person{"same tenant": bob, "another tenant": eve, "nobody": {}, "as her": {key: bob.key, user: "ana"}}, toPay)
	if works() == "" {
		t.Error("her session has ended by what others did")
	}
	for _, fixed := range []string{"mcp_fixed", "x", strings.Repeat("a", 5000), hers} {
		attack(t, attempt{"a session of one's own choice: " + fixed[:min(len(fixed), 10)], func() string {
			got := w.mcpSession(bob, "Mcp-Session-Id", fixed)
			if status, text := w.rpc(bob, fixed, rpcOf(1, "tools/list", nil)); got == fixed || status == http.StatusOK {
				return text
			}
			return ""
		}})
	}
	theirs := w.mcpSession(eve)
	for name, c := range map[string]struct {
		params  map[string]any
		headers []string
	}{
		"plain":         {},
		"by meta":       {params: map[string]any{"_meta": map[string]any{"tenant": "default", "tenant_id": "default", "user_id": "ana", "io.modelcontextprotocol/tenant": "default", "grant": "x"}}},
		"by a header":   {headers: []string{"X-Tenant-Id", "default"}},
		"by its user":   {headers: []string{"X-User-Id", "ana"}},
		"by both":       {headers: []string{"X-Tenant-Id", "default", "X-User-Id", "ana"}},
		"by a cursor":   {params: map[string]any{"cursor": "default"}},
		"by a protocol": {headers: []string{"Mcp-Protocol-Version", "2026-07-28"}, params: map[string]any{"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{}, "tenant": "default"}}},
	} {
		attack(
			t,
			attempt{"tools of another tenant, " + name, func() string {
				if _, text := w.rpc(eve, theirs, rpcOf(3, "tools/list", c.params), c.headers...); strings.Contains(text, "drop_all") || strings.Contains(text, `"`+toolOf(pay)+`"`) {
					return text
				}
				return ""
			}},
			attempt{"a call of another tenant's tool, " + name, func() string {
				params := map[string]any{"name": toolOf(pay), "arguments": map[string]string{"region": "eu"}}
				for k, v := range c.params {
					params[k] = v
				}
				return w.calls(pay, func() { w.rpc(eve, theirs, rpcOf(4, "tools/call", params), c.headers...) })
			}},
		)
	}
	w.oddMessages(ana, hers)
	w.foreignPages(ana)
	for _, uri := range []string{"file:///etc/passwd", "file://" + w.dir + "/keys/root.pem", "skill://../../keys/root.pem", "skill:///etc/passwd", "writ://default/ana", "cas://sha256:" + strings.Repeat("0", 64), "http://127.0.0.1/", "data:text/plain,root:", "", "skills/../keys/api_key"} {
		for _, method := range []string{"resources/read", "resources/subscribe", "completion/complete"} {
			attack(t, attempt{method + " " + uri, func() string {
				if _, text := w.rpc(ana, hers, rpcOf(5, method, map[string]any{"uri": uri, "ref": map[string]string{"type": "ref/resource", "uri": uri}, "argument": map[string]string{"name": "a", "value": "b"}})); strings.Contains(text, "root:x") || strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "contents") {
					return text
				}
				return ""
			}})
		}
	}
	if works() == "" {
		t.Error("her session has ended meanwhile")
	}
}

// othersSessions are used by nobody else.
func (w *redWorld) othersSessions(session string, by map[string]person, call any) {
	w.t.Helper()
	for name, who := range by {
		who.session = ""
		for _, method := range []string{"tools/list", "ping", "resources/list", "logging/setLevel", "notifications/cancelled"} {
			attack(w.t, attempt{name + ": " + method + " in her session", func() string {
				if status, text := w.rpc(who, session, rpcOf(1, method, map[string]any{"level": "debug", "requestId": 2})); status < http.StatusBadRequest && name != "as her" {
					return fmt.Sprintf("HTTP %d %s", status, text)
				}
				return ""
			}})
		}
		attack(
			w.t,
			attempt{name + ": a call in her session", func() string { return w.calls(pay, func() { w.rpc(who, session, rpcOf(2, "tools/call", call)) }) }},
			attempt{name + ": her stream", func() string {
				if status, _, text := w.knock(who, http.MethodGet, "/mcp", nil, "Accept", "application/json", "Mcp-Session-Id", session); status < http.StatusBadRequest {
					return text
				}
				return ""
			}},
			attempt{name + ": the end of her session", func() string {
				if status, _, text := w.knock(who, http.MethodDelete, "/mcp", nil, "Mcp-Session-Id", session); status < http.StatusBadRequest {
					return text
				}
				return ""
			}},
		)
	}
}

// oddMessages are answered, call nothing twice, and break nothing.
func (w *redWorld) oddMessages(who person, session string) {
	w.t.Helper()
	call := `"method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":{"region":"eu"}}` // a rule allows it
	list := []string{
		`[{"jsonrpc":"2.0","id":1,` + call + `}]`, `[{"jsonrpc":"2.0","id":1,` + call + `},{"jsonrpc":"2.0","id":2,` + call + `}]`, `[]`, `null`, `7`, `"a"`, `{}`, `{`, ``, `{"jsonrpc":"2.0"}`,
		`{"jsonrpc":"1.0","id":1,` + call + `}`, `{"jsonrpc":"2.0","id":{"a":1},` + call + `}`, `{"jsonrpc":"2.0","id":[1],` + call + `}`, `{"jsonrpc":"2.0","id":true,` + call + `}`, `{"jsonrpc":"2.0","id":null,` + call + `}`,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 100_000) + `",` + call + `}`, `{"jsonrpc":"2.0","id":1` + strings.Repeat("0", 400) + `,` + call + `}`, `{"jsonrpc":"2.0","id":1,"id":2,` + call + `}`, `{"jsonrpc":"2.0","id":1,"method":"ping",` + call + `}`, `{"jsonrpc":"2.0","id":1,` + strings.Replace(call, "method", "Method", 1) + `,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `","Name":"rates","arguments":{"region":"us"}}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":{"region":"eu","region":"us"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":"{\"region\":\"us\"}"}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":[{"region":"us"}]}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"../` + toolOf(pay) + `","arguments":{"region":"us"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"BANK.PAY","arguments":{"region":"us"}}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `\u0000","arguments":{"region":"us"}}}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":{"region":"us"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":{"region":"us"},"_meta":{"progressToken":{"a":1}}}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":{"region":"us"},"_meta":{"progressToken":"` + strings.Repeat("p", 50_000) + `"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":{"region":"us"},"_meta":{"approved":true,"writ/approved":true,"hold":false,"roles":["admin"]}}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolOf(pay) + `","arguments":{"region":"us"},"task":{"ttl":1}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 50_000) + `"}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + `}`,
	}
	for _, body := range list {
		attack(w.t, attempt{"a message " + body[:min(len(body), 150)], func() (through string) {
			through = w.calls(pay, func() {
				if status, text := w.rpc(who, session, []byte(body)); status >= http.StatusInternalServerError || strings.Contains(text, "panic") {
					through = fmt.Sprintf("HTTP %d %s", status, text)
				}
			})
			return through
		}})
	}
}

// foreignPages in a browser neither call nor read.
func (w *redWorld) foreignPages(who person) {
	w.t.Helper()
	begin := marshalled(rpcOf(1, "initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "t", "version": "1"}}))
	own := strings.TrimPrefix(w.url, "http://")
	tries := map[string][]string{}
	for _, origin := range []string{"https://evil.example", "null", "file://", "http://" + own + ".evil.example", "http://localhost@evil.example", "http://evil.example#" + own, "http://evil.example:80/" + own, "http://127.0.0.1.nip.io", "chrome-extension://abc", "http://localhost.evil.example", "http://xn--lcalhost-r9a", "http://[::ffff:8.8.8.8]", "http://169.254.169.254", "javascript:0", "http://10.0.0.1", "http://" + own + " http://evil.example"} {
		tries["from "+origin] = []string{"Origin", origin}
	}
	for _, host := range []string{"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", own + ".evil.example", "10.0.0.1", "169.254.169.254", "user@localhost.evil.example"} {
		tries["to "+host] = []string{"Host", host}
	}
	for name, headers := range tries {
		attack(w.t, attempt{name, func() string {
			status, header, text := w.knock(who, http.MethodPost, "/mcp", []byte(begin), append(headers, "Accept", "application/json, text/event-stream")...)
			if status < http.StatusBadRequest || header.Get("Access-Control-Allow-Origin") != "" || header.Get("Mcp-Session-Id") != "" {
				return fmt.Sprintf("HTTP %d %v %s", status, header, text)
			}
			return ""
		}})
	}
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "application/xml"} {
		attack(w.t, attempt{"as " + media, func() string {
			if status, _, text := w.knock(who, http.MethodPost, "/mcp", []byte(begin), "Content-Type", media, "Accept", "application/json, text/event-stream"); status < http.StatusBadRequest {
				return text
			}
			return ""
		}})
	}
	for _, query := range []string{"api_key", "key", "X-Api-Key", "access_token", "token"} {
		attack(w.t, attempt{"a key in the address, as " + query, func() string {
			if status, _, text := w.knock(person{}, http.MethodPost, "/mcp?"+query+"="+who.key, []byte(begin), "Accept", "application/json, text/event-stream"); status < http.StatusBadRequest {
				return text
			}
			return ""
		}})
	}
	attack(w.t, attempt{"a question of a browser before", func() string {
		status, header, _ := w.knock(person{}, http.MethodOptions, "/mcp", nil, "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")
		if header.Get("Access-Control-Allow-Origin") != "" {
			return fmt.Sprint(status, header)
		}
		return ""
	}})
}
