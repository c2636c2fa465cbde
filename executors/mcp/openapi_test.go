package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shopAPI is an HTTP API that records requests.
type shopAPI struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // method, URL and body
	last http.Header
	host string
}

func serveShop(t *testing.T) *shopAPI {
	t.Helper()
	s := &shopAPI{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen, s.last, s.host = append(s.seen, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body))), r.Header.Clone(), r.Host
		s.mu.Unlock()
		code, err := strconv.Atoi(filepath.Base(r.URL.Path))
		if err != nil || code < http.StatusOK {
			code = http.StatusOK
		}
		switch {
		case code >= 300 && code < 400:
			w.Header().Set("Location", "/v1/orders/1")
		case code == 206: // bytes
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte{0x89, 'P', 0xff})
			return
		case code == 203:
			w.Header().Set("Content-Type", "text/csv")
			_, _ = io.WriteString(w, "a,b")
			return
		case code == 204:
			w.WriteHeader(code)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"n":9007199254740993}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shopAPI) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.seen
	s.seen = nil
	return out
}

// shop is a client of the API by its document.
func shop(t *testing.T, s *shopAPI, document string) *Client {
	t.Helper()
	src, err := ParseSource("name=shop openapi=" + document + " url=" + s.URL + "/v1/?api_key=operator")
	if err != nil {
		t.Fatal(err)
	}
	src.Header = http.Header{"Authorization": {"Bearer of the operator"}, "X-Kept": {"kept"}}
	return dial(t, src, quick())
}

func TestOpenAPITools(t *testing.T) {
	c := shop(t, serveShop(t), "testdata/shop.yaml")
	list, err := c.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range list {
		got[m.Name] = string(m.InputSchema)
		if m.Err != nil {
			got[m.Name] = m.Err.Error()
		}
		if m.ReadOnlyHint != nil || len(m.Name) > maxOperation {
			t.Errorf("%s: %s", m.Name, m.Annotations)
		}
	}
	const id = `"id":{"type":"string"}`
	want := map[string]string{
		"getOrder": `{"additionalProperties":false,"properties":{"X-Team":{"type":"string"},"api_key":{"type":"string"},"fields":{"items":{"type":"string"},"type":"array"},` + id +
			`,"page":{"exclusiveMinimum":0,"type":"integer"},"tag":{"items":{"type":"string"},"type":"array"}},"required":["id"],"type":"object"}`,
		"orders_replace": `{"$defs":{"Line":{"properties":{"n":{"minimum":0,"type":"integer"},"part":{"$ref":"#/$defs/Line"}},"type":"object"},` +
			`"Order":{"properties":{"example":{"type":["string","null"]},"lines":{"items":{"$ref":"#/$defs/Line"},"type":"array"}},"required":["lines"],"type":"object"}},` +
			`"additionalProperties":false,"properties":{"body":{"$ref":"#/$defs/Order"},` + id + `},"required":["body","id"],"type":"object"}`,
		"delete_orders_id": `{"additionalProperties":false,"properties":{` + id + `},"required":["id"],"type":"object"}`,
		"upload":           "upload: the operation is not offered: its request body is multipart/form-data, and only JSON is sent",
		"search":           "search: the operation is not offered: the parameter filter has a form that is not sent",
		"lost":             "lost: the operation is not offered: its path names {where}, which is no parameter of the path",
		"status":           `{"additionalProperties":false,"properties":{"code":{"type":"integer"}},"required":["code"],"type":"object"}`,
		"get_any_of_a_very_long_path_that_no_client_c_8c684bd9": `{"additionalProperties":false,"properties":{"any":{"type":"string"}},"required":["any"],"type":"object"}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestOpenAPIRequests: an input becomes one request below the base URL, and cannot change where it
// goes or by whose right.
func TestOpenAPIRequests(t *testing.T) {
	s := serveShop(t)
	c := shop(t, s, "testdata/shop.yaml")
	for name, x := range map[string]struct{ tool, input, want string }{
		"all kinds": {"getOrder", `{"id":"a b;c,d?e#f%2e","fields":["x","y"],"tag":["1","2"],"page":9007199254740993,"X-Team":"sales"}`, "GET /v1/orders/a%20b%3Bc%2Cd%3Fe%23f%252e?api_key=operator&fields=x%2Cy&page=9007199254740993&tag=1&tag=2"},
		"a body":    {"orders_replace", `{"id":"1","body":{"lines":[]}}`, `PUT /v1/orders/1?api_key=operator {"lines":[]}`},
	} {
		if _, err := c.Call(t.Context(), x.tool, json.RawMessage(x.input), CallMeta{IntentID: "sha256:ab"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff([]string{x.want}, s.requests()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if h := s.last; h.Get("Authorization") != "Bearer of the operator" || h.Get("X-Kept") != "kept" || h.Get("Idempotency-Key") != "sha256:ab" || s.host != strings.TrimPrefix(s.URL, "http://") {
			t.Errorf("%s: %s %v", name, s.host, h)
		}
	}
	for name, input := range map[string]string{
		"up": `{"id":".."}`, "here": `{"id":"."}`, "a slash": `{"id":"a/b"}`, "a backslash": `{"id":"a\\b"}`, "nothing": `{"id":""}`, "no value": `{}`, "a zero byte": `{"id":"a\u0000"}`,
		"an object": `{"id":{"a":1}}`, "a list that leads up": `{"id":[".."]}`, "null": `{"id":null}`,
		"a credential": `{"id":"1","Authorization":"Bearer x"}`, "a credential, in small": `{"id":"1","authorization":"Bearer x"}`, "the host": `{"id":"1","host":"evil.example"}`, "a hop": `{"id":"1","Connection":"X-Kept"}`,
		"a cookie": `{"id":"1","session":"x"}`, "the operator's header": `{"id":"1","X-Kept":"x"}`, "the operator's query": `{"id":"1","api_key":"x"}`, "two lines": `{"id":"1","X-Team":"a\r\nAuthorization: x"}`, "a body": `{"id":"1","body":{}}`,
	} {
		_, err := c.Call(t.Context(), "getOrder", json.RawMessage(input), CallMeta{})
		if e := wantKind(t, err, ErrTool, "bad input"); !e.Undelivered {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.requests(); got != nil {
			t.Errorf("%s: sent %q", name, got)
		}
	}
	for _, tool := range []string{"upload", "search", "lost"} {
		_, err := c.Call(t.Context(), tool, nil, CallMeta{})
		wantKind(t, err, ErrNotOffered)
	}
}

// TestOpenAPIAnswers: JSON is structured, other content a text or a file; a status from 400 on is
// the operation's own failure, and one that leaves open whether it acted says so.
func TestOpenAPIAnswers(t *testing.T) {
	s := serveShop(t)
	c := shop(t, s, "testdata/shop.yaml")
	call := func(code string) (*Result, error) {
		return c.Call(t.Context(), "status", json.RawMessage(`{"code":`+code+`}`), CallMeta{})
	}
	for code, want := range map[string]*Result{
		"200": {Data: []byte(`{"n":9007199254740993}`), IsJSON: true, Structured: true},
		"203": {Data: []byte("a,b"), Text: "a,b"},
		"204": {Data: []byte("HTTP 204"), Text: "HTTP 204"},
		"206": {Data: []byte(""), Files: []File{{Type: "resource", MIMEType: "image/png", URI: "response", Data: []byte{0x89, 'P', 0xff}}}, Parts: []Part{{File: 1, JSON: map[string]any{"type": "resource", "resource": map[string]any{"uri": "response", "mimeType": "image/png", "blob": nil}}}}},
	} {
		got, err := call(code)
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", code, d)
		}
	}
	for code, want := range map[string]Error{
		"400": {Kind: ErrTool}, "401": {Kind: ErrTool}, "404": {Kind: ErrTool}, "500": {Kind: ErrTool, Unexplained: true}, "501": {Kind: ErrTool, Unexplained: true}, "302": {Kind: ErrTool, Unexplained: true},
		"429": {Kind: ErrUnavailable, Undelivered: true}, "502": {Kind: ErrUnavailable}, "504": {Kind: ErrUnavailable},
	} {
		_, err := call(code)
		e := wantKind(t, err, want.Kind, "HTTP "+code)
		if e.Unexplained != want.Unexplained || e.Undelivered != want.Undelivered {
			t.Errorf("%s: %+v", code, e)
		}
	}
	s.requests()
	if _, err := call("302"); err == nil || len(s.requests()) != 1 {
		t.Error("a redirect was followed")
	}
	s.Close()
	_, err := call("200") // perhaps over an idle connection: it may have been sent
	wantKind(t, err, ErrUnavailable)
	_, err = call("200")
	if e := wantKind(t, err, ErrUnavailable); !e.Undelivered {
		t.Errorf("%+v", e)
	}
}

// TestOpenAPIChanges: where a request goes is part of what was approved. A document that leads
// elsewhere, or is none, is refused.
func TestOpenAPIChanges(t *testing.T) {
	s := serveShop(t)
	raw, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	write := func(old, now string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), old, now)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("", "")
	c := shop(t, s, file)
	digest := func() string {
		t.Helper()
		list, err := c.Manifests(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if m.Name == "getOrder" {
				return m.Digest()
			}
		}
		return ""
	}
	approved := digest()
	write("  /orders/{id}:", "  /admins/{id}:")
	if _, err := c.Call(t.Context(), "getOrder", json.RawMessage(`{"id":"1"}`), CallMeta{Digest: approved}); err != nil {
		t.Error(err)
	}
	if got := s.requests(); len(got) != 1 || !strings.HasPrefix(got[0], "GET /v1/orders/1") {
		t.Errorf("before it was read again: %q", got)
	}
	for old, now := range map[string]string{"  /orders/{id}:": "  /admins/{id}:", "name: fields, in: query": "name: fields, in: header", "explode: false, ": ""} {
		if write(old, now); digest() == approved {
			t.Errorf("%q changes nothing", now)
		}
		_, err := c.Call(t.Context(), "getOrder", json.RawMessage(`{"id":"1"}`), CallMeta{Digest: approved})
		wantKind(t, err, ErrChanged)
	}
	for old, now := range map[string]string{
		`{$ref: "#/components/schemas/Order"}`: `{$ref: "http://169.254.169.254/latest"}`, "openapi: 3.0.3": "swagger: 2.0", "paths:": "paths: [", "- {name: filter, in: query, style: deepObject, schema: {type: object}}": "- {$ref: /etc/passwd}",
	} {
		write(old, now)
		_, err := c.Manifests(t.Context())
		wantKind(t, err, ErrUnavailable, file)
	}
	if got := s.requests(); got != nil {
		t.Errorf("sent %q", got)
	}
}

// TestOpenAPISettings: the base URL is the operator's, and settings without effect are refused.
func TestOpenAPISettings(t *testing.T) {
	for text, want := range map[string]string{
		"name=shop openapi=shop.yaml":                                 "no url",
		"name=shop openapi=shop.yaml -- shop-server":                  "only a server with url",
		"name=shop openapi=shop.yaml url=https://a -- https://b":      "twice",
		"name=shop openapi=shop.yaml url=https://a files=/srv":        "only a server with command",
		"name=shop openapi=shop.yaml url=https://u:p@a":               "credentials",
		"name=shop openapi= url=https://a":                            "not empty",
		"name=shop openapi=shop.yaml url=https://a principal_hmac=ab": "principal_hmac",
	} {
		if _, err := ParseSource(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
