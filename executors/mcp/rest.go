package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/net/http/httpguts"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/visible"
)

// rest answers the messages of the protocol in the place of a server whose tools are the operations
// of an OpenAPI document.
type rest struct {
	src  Source
	http *http.Client
}

var _ transport.Interface = (*rest)(nil)

// openREST prepares a connection; nothing is sent yet.
func (c *Client) openREST(context.Context) (*conn, error) {
	r := &rest{src: c.src, http: egress.Client(limitTransport{c.opt.RoundTripper, c.headers, c.opt.MaxBytes})}
	rpc := client.NewClient(r)
	return &conn{rpc: rpc, dead: func() bool { return false }, close: func() { _ = rpc.Close() }}, nil
}

// Start implements transport.Interface.
func (r *rest) Start(context.Context) error { return nil }

// SendNotification implements transport.Interface: nobody listens.
func (r *rest) SendNotification(context.Context, wire.JSONRPCNotification) error { return nil }

// SetNotificationHandler implements transport.Interface: there are no notifications.
func (r *rest) SetNotificationHandler(func(wire.JSONRPCNotification)) {}

// Close implements transport.Interface.
func (r *rest) Close() error {
	r.http.CloseIdleConnections()
	return nil
}

// GetSessionId implements transport.Interface.
func (r *rest) GetSessionId() string { return "" } //nolint:revive // the interface names it so

// SendRequest implements transport.Interface.
func (r *rest) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	var result any
	var err error
	switch wire.MCPMethod(req.Method) {
	case wire.MethodInitialize:
		result = wire.InitializeResult{ProtocolVersion: wire.ProtocolVersion20251125, ServerInfo: wire.Implementation{Name: "openapi", Version: "1"}}
	case wire.MethodToolsList:
		var tools []json.RawMessage
		if tools, err = operationTools(r.src.OpenAPI, r.src.Header); err == nil {
			result = map[string]any{"tools": tools}
		}
	case wire.MethodToolsCall:
		result, err = r.call(ctx, req)
	default:
		return &transport.JSONRPCResponse{ID: req.ID, Error: &wire.JSONRPCErrorDetails{Code: wire.METHOD_NOT_FOUND, Message: "not offered"}}, nil
	}
	var failed *requestError
	out := &transport.JSONRPCResponse{ID: req.ID}
	switch {
	case errors.As(err, &failed):
		out.Error = &wire.JSONRPCErrorDetails{Code: wire.INTERNAL_ERROR, Message: failed.text}
	case err != nil:
		return nil, err
	default:
		if out.Result, err = json.Marshal(result); err != nil {
			return nil, err
		}
	}
	stateOf(ctx).see(req.Method, out)
	return out, nil
}

// requestError is an answer of the API that does not say whether the request had an effect.
type requestError struct{ text string }

func (f *requestError) Error() string { return f.text }

type toolKey struct{}

// call sends the request of an operation. It is the one of the tool that was looked up, and whose
// digest was compared, whatever the document is meanwhile.
func (r *rest) call(ctx context.Context, rpc transport.JSONRPCRequest) (any, error) {
	t, _ := ctx.Value(toolKey{}).(*tool)
	var about struct{ Request *request }
	var input struct {
		Arguments map[string]any `json:"arguments"`
	}
	raw, err := json.Marshal(rpc.Params)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		err = d.Decode(&input)
	}
	if err == nil && t != nil {
		err = json.Unmarshal(t.Annotations, &about)
	}
	if err != nil || about.Request == nil {
		return nil, &Error{Kind: ErrTool, Reason: "no request can be made of it", Undelivered: true, Err: err}
	}
	req, err := about.Request.fill(ctx, r.src.URL, input.Arguments)
	if err != nil {
		return nil, &Error{Kind: ErrTool, Reason: "bad input: " + err.Error(), Undelivered: true}
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	if key := rpc.Header.Get("Idempotency-Key"); key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return result(stateOf(ctx), resp, body)
}

// fill makes the request of an input, below a base URL.
func (q *request) fill(ctx context.Context, base string, input map[string]any) (*http.Request, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("the base URL cannot be read")
	}
	query, header := u.Query(), http.Header{}
	path := map[string]string{}
	var body io.Reader = http.NoBody
	for name, v := range input {
		in := q.In[name]
		if in == bodyInput {
			raw, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			body = bytes.NewReader(raw)
			header.Set("Content-Type", "application/json")
			continue
		}
		texts, err := textsOf(v)
		switch joined := strings.Join(texts, ","); {
		case err != nil:
			return nil, fmt.Errorf("/%s %w", name, err)
		case in == "path":
			path[name] = joined
		case in == "header" && !httpguts.ValidHeaderFieldValue(joined):
			return nil, fmt.Errorf("/%s is not one line", name)
		case in == "header":
			header.Set(name, joined)
		case in != "query" || u.Query().Has(name): // the operator's values stay
			return nil, fmt.Errorf("/%s is no parameter", name)
		case slices.Contains(q.Joined, name):
			query.Set(name, joined)
		default:
			query[name] = texts
		}
	}
	below, err := expand(q.Path, path)
	if err != nil {
		return nil, err
	}
	place := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String() + strings.TrimSuffix(u.EscapedPath(), "/") + below
	req, err := http.NewRequestWithContext(ctx, q.Method, place, body)
	if err != nil {
		return nil, errors.New("no URL can be made of it")
	}
	req.URL.RawQuery, req.Header = query.Encode(), header
	return req, nil
}

// textsOf returns a value, or the values of a list, as texts.
func textsOf(v any) (texts []string, err error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, x := range list {
		switch x := x.(type) {
		case string:
			texts = append(texts, x)
		case bool, json.Number:
			texts = append(texts, fmt.Sprint(x))
		default:
			return nil, errors.New("must be a text, number or boolean, or a list of these")
		}
	}
	return texts, nil
}

// expand fills the template of a path. Each segment is encoded as a whole; none leads elsewhere.
func expand(template string, values map[string]string) (string, error) {
	var out strings.Builder
	for segment := range strings.SplitSeq(strings.TrimPrefix(template, "/"), "/") {
		var bad error
		segment = placeholder.ReplaceAllStringFunc(segment, func(found string) string {
			name := found[1 : len(found)-1]
			v := values[name]
			if v == "" || v == "." || v == ".." || strings.ContainsAny(v, `/\`) || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				bad = fmt.Errorf(`/%s must be a part of a path: not empty, no . or .., and without / and \`, name)
			}
			return v
		})
		if bad == nil && (segment == "." || segment == "..") {
			bad = errors.New("the path leads elsewhere")
		}
		if bad != nil {
			return "", bad
		}
		out.WriteString("/" + url.PathEscape(segment))
	}
	return out.String(), nil
}

// result is the answer of an API as that of a tool. What says that the API itself is overloaded or
// unreachable stays the status of the server's exchange; any other status is the operation's own.
func result(st *state, resp *http.Response, body []byte) (any, error) {
	code := resp.StatusCode
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return nil, fmt.Errorf("HTTP %d", code)
	}
	st.status.Store(0)
	about := fmt.Sprintf("HTTP %d", code)
	media := mimeType(cmp.Or(resp.Header.Get("Content-Type"), "text/plain"))
	text := utf8.Valid(body) && (len(body) == 0 || isJSON(media) || strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "xml") || media == "application/x-www-form-urlencoded")
	switch {
	case code >= 300 && code < 400:
		return nil, &requestError{about + ": it redirects elsewhere, which is not followed"}
	case code >= 400 && text:
		about = visible.Line(strings.TrimSpace(about+" "+string(body)), maxReason)
	}
	out := map[string]any{"isError": code >= 400}
	switch {
	case code >= 500:
		return nil, &requestError{about}
	case code >= 400 || len(body) == 0:
		out["content"] = []any{wire.NewTextContent(about)}
		if isJSON(media) && json.Valid(body) && len(body) <= maxStructured {
			out["structuredContent"] = json.RawMessage(body)
		}
	case isJSON(media) && json.Valid(body) && len(body) <= maxStructured:
		out["structuredContent"] = json.RawMessage(body)
	case text:
		out["content"] = []any{wire.NewTextContent(string(body))}
	default:
		out["content"] = []any{wire.NewEmbeddedResource(wire.BlobResourceContents{URI: "response", MIMEType: media, Blob: base64.StdEncoding.EncodeToString(body)})}
	}
	return out, nil
}
