package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/visible"
)

// CallMeta goes with a call but is not part of its input.
type CallMeta struct {
	// IntentID makes a repeated call recognisable: sent as _meta
	// "aob.dev/intent_id" and, over HTTP, as Idempotency-Key.
	IntentID string
	// Principal is the user on whose behalf the call is made: sent as _meta "aob.dev/principal". To
	// a server that shares a key, "aob.dev/principal_hmac" proves it, and the server in turn proves
	// the user of an enricher response by the member principal_hmac, see proof.
	Principal string
	// Owner identifies a user across tenants. It is not sent.
	Owner string
	// AllowedSkills is sent as _meta "aob.dev/allowed_skills". The router has
	// already refused calls of others.
	AllowedSkills []string
	// Digest, where set, is the manifest digest that was approved; a tool with
	// another one is not called (ErrChanged). It is compared with the last
	// listing on this connection.
	Digest string
	// RetrySafe allows the skill to run more than once. Without it a call is sent at most once.
	RetrySafe bool
	// RetryLate, with RetrySafe, sends it again after a time-out, too.
	RetryLate bool
	// Log gets the server's messages during the call; nil: the client's log.
	Log *slog.Logger
	// OnMessage, if not nil, gets the same. It is called from several goroutines, and may be
	// called once more after the call.
	OnMessage func(ServerMessage)
	// OnProgress, if not nil, gets the progress of the call, likewise.
	OnProgress func(bus.Progress)
}

// Result is the answer of a tool.
type Result struct {
	// Data is the structured content as JSON, else the text as received.
	Data []byte
	// IsJSON reports that Data is JSON: structured content, or a text that is one
	// JSON object or array.
	IsJSON bool
	// IsError reports that the tool itself failed.
	IsError bool
	// Text is all text content as received, one newline between parts.
	Text string
	// Files are the content that is no text.
	Files []File
	// Parts are the content as received, without parts that were dropped; nil: Data says it all.
	Parts []Part
	// Structured reports that Data is structured content.
	Structured bool
	// Odd lists parts of the answer that were dropped or differ from the tool's declaration.
	Odd []string
	// Proof is the principal_hmac that an enricher response must have; empty: none.
	Proof string
}

// Call runs a tool with input, a JSON object (empty: {}). Output is checked against the schema that
// the tool declares, whether it comes as structured content or as a text of JSON; a violation is
// noted in Result.Odd. A failure that the tool reports is ErrTool with a result; every other error
// has a nil result.
func (c *Client) Call(ctx context.Context, name string, input json.RawMessage, meta CallMeta) (*Result, error) {
	input, err := object(input)
	if err != nil {
		return nil, &Error{Kind: ErrSchema, Tool: name, Reason: "bad input", Undelivered: true, Err: err}
	}
	if !meta.RetrySafe {
		c.renew(ctx)
	}
	t, err := c.lookup(ctx, name, meta.Digest)
	if err != nil {
		return nil, c.conceal(err)
	}
	if name == catalog.ReadSkill {
		return c.read(ctx, input, meta)
	}
	ctx = context.WithValue(ctx, toolKey{}, t)
	req := c.request(t.Declared(), input, meta)
	q := &patience{limit: cmp.Or(c.src.Timeouts[name], c.opt.Timeout), again: meta.RetryLate}
	token, end := c.asides.during(meta.Owner, pendingCall{cmp.Or(meta.Log, c.log), meta.OnMessage, func(p bus.Progress) {
		q.renew()
		if meta.OnProgress != nil {
			meta.OnProgress(p)
		}
	}})
	defer end()
	req.Params.Meta.ProgressToken = token
	var res toolResult
	failed := c.attempt(ctx, meta.RetrySafe, func() (e *Error) {
		var forgotten bool
		if res, forgotten, e = c.send(ctx, req, q, meta.RetrySafe); !forgotten {
			return e
		}
		if _, err := c.lookup(ctx, name, meta.Digest); err != nil {
			return asError(err)
		}
		res, _, e = c.send(ctx, req, q, meta.RetrySafe)
		return e
	})
	if failed != nil {
		failed.Tool = name
		return nil, c.conceal(failed)
	}
	got, err := t.accept(ctx, res)
	if got != nil {
		if name == FindTool {
			names, _ := Candidates(got)
			c.Know(names...)
		}
		got.Proof = c.proof("answer", meta)
		if hide := c.opt.Hide; hide != nil { // nothing of a token reaches a model
			got.Data, got.Text = []byte(hide(string(got.Data))), hide(got.Text)
		}
	}
	return got, c.conceal(err)
}

// attempt sends a request and retries it if it may succeed later and repeating it is safe, or if a
// server at a URL has not accepted it.
func (c *Client) attempt(ctx context.Context, safe bool, send func() *Error) *Error {
	for n := 1; ; n++ {
		err := send()
		if err == nil || !safe && (c.src.URL == "" || !err.Undelivered) || !err.Retryable() || n > c.opt.Retries || err.after > maxRetryAfter || err.late || ctx.Err() != nil {
			return err
		}
		if clock.Sleep(ctx, max(c.opt.Backoff<<min(n-1, 6), err.after)) != nil {
			return err
		}
	}
}

func object(input json.RawMessage) (json.RawMessage, error) {
	input = bytes.TrimSpace(input)
	switch {
	case len(input) == 0:
		return json.RawMessage("{}"), nil
	case !json.Valid(input):
		return nil, errors.New("not JSON")
	case input[0] != '{':
		return nil, errors.New("not a JSON object")
	}
	return input, nil
}

// lookup finds the manifest. It lists the server's tools where this connection has not
// listed them yet, or not the tool in this version.
func (c *Client) lookup(ctx context.Context, name, digest string) (*tool, error) {
	c.mu.Lock()
	t := c.tools[name]
	c.mu.Unlock()
	is := func(t *tool) bool { return t != nil && (digest == "" || t.Digest() == digest) }
	same := is(t)
	if !same {
		list, err := c.list(ctx)
		if err != nil {
			e := asError(err)
			e.Tool, e.Undelivered = name, true
			return nil, e
		}
		t = nil
		for _, l := range list {
			if l.Name == name {
				t = l
			}
		}
		same = is(t)
	}
	switch {
	case t == nil:
		return nil, &Error{Kind: ErrTool, Tool: name, Reason: "the server has no such tool", Undelivered: true}
	case t.Err != nil:
		e := *asError(t.Err)
		e.Undelivered = true
		return nil, &e
	case !same:
		return nil, &Error{Kind: ErrChanged, Tool: name, Reason: "it needs approval", Undelivered: true}
	}
	return t, nil
}

// proof is the hex HMAC-SHA-256 by the shared key of "writ-call-v1" or "writ-answer-v1",
// intent_id and principal, one a line. Without a key it is empty.
func (c *Client) proof(what string, meta CallMeta) string {
	if c.src.PrincipalKey == nil {
		return ""
	}
	mac := hmac.New(sha256.New, c.src.PrincipalKey)
	fmt.Fprintf(mac, "writ-%s-v1\n%s\n%s", what, meta.IntentID, meta.Principal)
	return hex.EncodeToString(mac.Sum(nil))
}

func (c *Client) request(name string, input json.RawMessage, meta CallMeta) wire.CallToolRequest {
	req := wire.CallToolRequest{}
	req.Params.Name, req.Params.Arguments = name, input
	fields := map[string]any{}
	if meta.IntentID != "" {
		req.Header = http.Header{"Idempotency-Key": {meta.IntentID}}
		fields["aob.dev/intent_id"] = meta.IntentID
	}
	if meta.Principal != "" {
		fields["aob.dev/principal"] = meta.Principal
		if proof := c.proof("call", meta); proof != "" {
			fields["aob.dev/principal_hmac"] = proof
		}
	}
	if len(meta.AllowedSkills) > 0 {
		fields["aob.dev/allowed_skills"] = meta.AllowedSkills
	}
	req.Params.Meta = &wire.Meta{AdditionalFields: fields}
	return req
}

// send sends the request once. forgotten reports that the server no longer knows the session: it has
// not run the call, or may run it again.
func (c *Client) send(ctx context.Context, req wire.CallToolRequest, q *patience, safe bool) (res toolResult, forgotten bool, failed *Error) {
	cn, err := c.acquire(ctx)
	if err != nil {
		return res, false, asError(err)
	}
	defer c.release(cn)
	ctx, st := withState(ctx)
	ctx, stop := q.begin(ctx)
	defer stop()
	if _, err = cn.rpc.CallTool(ctx, req); err == nil {
		return st.answer, false, nil
	}
	e, forgotten := c.failed(ctx, st, err, cn, safe)
	e.late = !q.again && errors.Is(e, context.DeadlineExceeded)
	// A 404 after the answer began is about resuming its stream.
	return res, forgotten || errors.Is(err, transport.ErrSessionTerminated) && !st.accepted.Load(), e
}

// accept checks the answer and makes the result. The tool has run, so no form of its answer fails
// the call.
func (t *tool) accept(ctx context.Context, a toolResult) (*Result, error) {
	texts, files, parts, odd := contents(a.content)
	res := &Result{IsError: a.isError, Files: files, Odd: slices.Concat(a.odd, odd), Structured: a.structured != nil}
	if !saysAll(parts, a) {
		res.Parts = parts
	}
	res.Text = strings.Join(texts, "\n")
	res.Data = []byte(res.Text)
	text := bytes.TrimSpace(res.Data)
	res.IsJSON = len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text)
	if a.structured != nil {
		res.Data, res.IsJSON = a.structured, true
	}
	if a.isError {
		reason := res.Text
		if reason == "" {
			reason = string(a.structured)
		}
		return res, &Error{Kind: ErrTool, Tool: t.Name, Reason: cmp.Or(visible.Line(reason, maxReason), "it gives no reason"), Unexplained: reason == "" || len(a.odd) > 0}
	}
	if broken := t.breaks(ctx, res); broken != "" {
		res.Odd = append(res.Odd, broken)
	}
	return res, nil
}

// breaks describes how an answer violates the tool's schema; empty: it does not.
func (t *tool) breaks(ctx context.Context, res *Result) string {
	if t.output == nil {
		return ""
	}
	if !res.IsJSON {
		return "it declares an output schema and sent no structured content"
	}
	if found := t.output.ValidateWithin(ctx, res.Data); len(found) > 0 {
		return "output does not match the declared schema at " + describe(found)
	}
	return ""
}

// asError returns the *Error that every method of Client fails with.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: ErrUnavailable, Err: err}
}

// toolResult is the result of a tool, as received. No fault in it prevents reading the rest: the
// tool has run, and oddities are reported beside the content.
type toolResult struct {
	content    []json.RawMessage
	structured json.RawMessage
	isError    bool
	odd        []string
}

// readAnswer splits a result, and returns as rest the part that the protocol library needs.
func readAnswer(result json.RawMessage) (a toolResult, rest json.RawMessage) {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(result, &members) != nil || members == nil {
		a.odd = append(a.odd, "its answer is no object")
		a.content = []json.RawMessage{result}
		return a, json.RawMessage(`{"content":[]}`)
	}
	content := members["content"]
	if json.Unmarshal(content, &a.content) != nil && !none(content) {
		a.odd = append(a.odd, "its content is no list")
		a.content = []json.RawMessage{content}
	}
	if structured := members["structuredContent"]; len(structured) > maxStructured {
		a.odd = append(a.odd, fmt.Sprintf("its structured content has more than %d bytes and was dropped", maxStructured))
	} else if !none(structured) {
		a.structured = structured
	}
	if failed := members["isError"]; !none(failed) && json.Unmarshal(failed, &a.isError) != nil {
		a.isError = true
		a.odd = append(a.odd, "its isError is neither true nor false")
	}
	if kind := members["resultType"]; !none(kind) && string(kind) != `"complete"` {
		// The library would call again with the requested input, which nobody provides.
		a.isError = true
		a.odd = append(a.odd, "it is not complete: it asks for more than was sent")
		delete(members, "resultType")
	}
	delete(members, "structuredContent")
	delete(members, "isError")
	members["content"] = json.RawMessage("[]")
	rest, err := json.Marshal(members)
	if err != nil {
		rest = json.RawMessage(`{"content":[]}`)
	}
	return a, rest
}

// contents divides the content of an answer into its texts and files. A part of unknown kind is a
// text. odd lists the dropped parts.
func contents(list []json.RawMessage) (texts []string, files []File, parts []Part, odd []string) {
	for n, raw := range list {
		part, f := partOf(raw)
		switch {
		case f == nil:
			texts = append(texts, part)
			parts = append(parts, newPart(raw, part, 0))
		case len(files) == maxFiles:
			odd = append(odd, fmt.Sprintf("the %d parts from part %d on were dropped: an answer has at most %d files", len(list)-n, n+1, maxFiles))
			return texts, files, parts, odd
		case f.Data == nil && f.Type != "link":
			odd = append(odd, fmt.Sprintf("part %d was dropped: its data is no base64", n+1))
		case f.Type == "link":
			files = append(files, *f)
			parts = append(parts, newPart(raw, f.URI, 0))
		default:
			files = append(files, *f)
			parts = append(parts, newPart(raw, "", len(files)))
		}
	}
	return texts, files, parts, odd
}

// partOf is one part of an answer: a text, or a file, which has no data if that cannot be read.
func partOf(raw json.RawMessage) (text string, f *File) {
	content, err := wire.UnmarshalContent(raw)
	if err != nil {
		if json.Unmarshal(raw, &text) != nil {
			text = strings.ToValidUTF8(string(raw), "\uFFFD")
		}
		return text, nil
	}
	switch c := content.(type) {
	case wire.TextContent:
		return c.Text, nil
	case wire.ImageContent:
		return "", newFile(File{Type: "image", MIMEType: c.MIMEType}, c.Data)
	case wire.AudioContent:
		return "", newFile(File{Type: "audio", MIMEType: c.MIMEType}, c.Data)
	case wire.ResourceLink:
		return "", &File{Type: "link", MIMEType: mimeType(c.MIMEType), Name: visible.Line(c.Name, maxLinkName), URI: visible.Line(c.URI, maxURI)}
	case wire.EmbeddedResource:
		switch r := c.Resource.(type) {
		case wire.TextResourceContents:
			return r.Text, nil
		case wire.BlobResourceContents:
			return "", newFile(File{Type: "resource", MIMEType: r.MIMEType, URI: visible.Line(r.URI, maxURI)}, r.Blob)
		}
	}
	return string(raw), nil
}
