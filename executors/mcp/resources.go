package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// readInput is the input schema of catalog.ReadSkill.
const readInput = `{"type":"object","properties":{"uri":{"type":"string"},"prompt":{"type":"string"},"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"additionalProperties":false}`

// reader is the tool that stands for the resources and prompts of a server, so that they are
// approved, bound to the server and counted like its tools; nil: the server has none.
func (c *Client) reader(cn *conn) *tool {
	can := cn.rpc.GetServerCapabilities()
	if can.Resources == nil && can.Prompts == nil {
		return nil
	}
	raw, _ := json.Marshal(map[string]any{ // plain data
		"name": catalog.ReadSkill, "description": "Lists and reads the resources and prompts of the server.",
		"inputSchema": json.RawMessage(readInput), "annotations": map[string]any{"readOnlyHint": true},
	})
	return parseTool(raw, c.src)
}

// maxEntry bounds an entry of a list of resources or prompts, and its name or URI, in bytes.
const maxEntry = 16 << 10

// read answers a call of catalog.ReadSkill: with the contents of a resource, the messages of a
// prompt, or the lists of both.
func (c *Client) read(ctx context.Context, input json.RawMessage, meta CallMeta) (res *Result, err error) {
	var args catalog.ResourceRead
	if err := json.Unmarshal(input, &args); err != nil {
		return nil, &Error{Kind: ErrSchema, Tool: catalog.ReadSkill, Reason: "bad input", Undelivered: true, Err: err}
	}
	about := c.request("", nil, meta).Params.Meta
	ask := c.lists
	switch {
	case args.URI != "":
		req := wire.ReadResourceRequest{}
		req.Params.URI, req.Params.Meta = args.URI, about
		ask = func(ctx context.Context, cn *conn) (*Result, *Error) {
			return c.contents(ctx, cn, "contents", contentsPart, func(ctx context.Context) error { _, err := cn.rpc.ReadResource(ctx, req); return err })
		}
	case args.Prompt != "":
		req := wire.GetPromptRequest{}
		req.Params.Name, req.Params.Arguments, req.Params.Meta = args.Prompt, args.Arguments, about
		ask = func(ctx context.Context, cn *conn) (*Result, *Error) {
			return c.contents(ctx, cn, "messages", messagePart, func(ctx context.Context) error { _, err := cn.rpc.GetPrompt(ctx, req); return err })
		}
	}
	_, end := c.asides.during(meta.Owner, pendingCall{cmp.Or(meta.Log, c.log), meta.OnMessage, nil})
	defer end()
	failed := c.attempt(ctx, true, func() *Error {
		cn, err := c.acquire(ctx)
		if err != nil {
			return asError(err)
		}
		defer c.release(cn)
		var e *Error
		res, e = ask(ctx, cn)
		return e
	})
	if failed != nil {
		failed.Tool = catalog.ReadSkill
		return nil, c.conceal(failed)
	}
	return res, nil
}

// ask sends a request and returns members of its result as received.
func (c *Client) ask(ctx context.Context, cn *conn, send func(context.Context) error) (map[string]json.RawMessage, *Error) {
	ctx, st := withState(ctx)
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	err := send(ctx)
	raw := st.result.Load()
	if err != nil && (raw == nil || st.rpc.Load() != nil) {
		e, _ := c.failed(ctx, st, err, cn, true)
		return nil, e
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(*raw, &members) != nil || members == nil {
		return nil, &Error{Kind: ErrSchema, Reason: "malformed response", Malformed: true}
	}
	if kind := members["resultType"]; !none(kind) && string(kind) != `"complete"` {
		return nil, &Error{Kind: ErrTool, Reason: "it is not complete: it asks for more than was sent"}
	}
	return members, nil
}

// contents reads a result whose member is a list of parts.
func (c *Client) contents(ctx context.Context, cn *conn, member string, read func(json.RawMessage, int) (Part, string, *File), send func(context.Context) error) (*Result, *Error) {
	members, failed := c.ask(ctx, cn, send)
	if failed != nil {
		return nil, failed
	}
	res := &Result{}
	var list []json.RawMessage
	if all := members[member]; json.Unmarshal(all, &list) != nil && !none(all) {
		res.Odd = append(res.Odd, "its "+member+" are no list")
		list = []json.RawMessage{all}
	}
	var texts []string
	for n, raw := range list {
		part, text, f := read(raw, len(res.Files)+1)
		switch {
		case part.JSON == nil, f != nil && f.Data == nil && f.Type != "link":
			res.Odd = append(res.Odd, fmt.Sprintf("part %d was dropped: it is malformed", n+1))
			continue
		case len(res.Files) == maxFiles && f != nil:
			res.Odd = append(res.Odd, fmt.Sprintf("the %d parts from part %d on were dropped: an answer has at most %d files", len(list)-n, n+1, maxFiles))
			list = nil
		case f != nil:
			res.Files = append(res.Files, *f)
		default:
			texts = append(texts, text)
		}
		if list == nil {
			break
		}
		res.Parts = append(res.Parts, part)
	}
	res.Text = strings.Join(texts, "\n")
	res.Data = []byte(res.Text)
	return res, nil
}

// contentsPart reads one of the contents of a resource.
func contentsPart(raw json.RawMessage, file int) (p Part, text string, f *File) {
	whole, err := json.Marshal(map[string]any{"type": "resource", "resource": raw})
	if err != nil {
		return p, "", nil
	}
	if text, f = partOf(whole); f == nil {
		file = 0
	}
	p = newPart(whole, text, file)
	inner, _ := p.JSON["resource"].(map[string]any)
	return Part{JSON: inner, File: file}, text, f
}

// messagePart reads a message of a prompt.
func messagePart(raw json.RawMessage, file int) (p Part, text string, f *File) {
	var m struct {
		Role    wire.Role
		Content json.RawMessage
	}
	if json.Unmarshal(raw, &m) != nil || m.Role != wire.RoleUser && m.Role != wire.RoleAssistant || none(m.Content) {
		return p, "", nil
	}
	if text, f = partOf(m.Content); f == nil || f.Type == "link" {
		file = 0
	}
	return Part{JSON: map[string]any{"role": string(m.Role), "content": newPart(m.Content, text, file).JSON}, File: file}, text, f
}

// lists asks for what the server offers: {"resources", "templates", "prompts"}, without entries that
// cannot be used.
func (c *Client) lists(ctx context.Context, cn *conn) (*Result, *Error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	can, rpc := cn.rpc.GetServerCapabilities(), cn.rpc
	out := catalog.ResourceLists{}
	var failed *Error
	if can.Resources != nil {
		out.Resources, failed = c.entries(ctx, cn, "resources", "uri", func(ctx context.Context, at wire.PaginatedRequest) error {
			_, err := rpc.ListResourcesByPage(ctx, wire.ListResourcesRequest{PaginatedRequest: at})
			return err
		})
		if failed == nil { // a server without templates may not know the method
			out.Templates, _ = c.entries(ctx, cn, "resourceTemplates", "uriTemplate", func(ctx context.Context, at wire.PaginatedRequest) error {
				_, err := rpc.ListResourceTemplatesByPage(ctx, wire.ListResourceTemplatesRequest{PaginatedRequest: at})
				return err
			})
		}
	}
	if can.Prompts != nil && failed == nil {
		out.Prompts, failed = c.entries(ctx, cn, "prompts", "name", func(ctx context.Context, at wire.PaginatedRequest) error {
			_, err := rpc.ListPromptsByPage(ctx, wire.ListPromptsRequest{PaginatedRequest: at})
			return err
		})
	}
	if failed != nil {
		return nil, failed
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, &Error{Kind: ErrSchema, Reason: "its lists are malformed", Err: err}
	}
	return &Result{Data: raw, IsJSON: true, Text: string(raw), Parts: []Part{{JSON: map[string]any{"type": "text", "text": string(raw)}}}}, nil
}

// entries of all pages of a list, each with a valid name.
func (c *Client) entries(ctx context.Context, cn *conn, member, name string, send func(context.Context, wire.PaginatedRequest) error) (out []json.RawMessage, failed *Error) {
	var at wire.PaginatedRequest
	size := 0
	for range maxPages {
		members, failed := c.ask(ctx, cn, func(ctx context.Context) error { return send(ctx, at) })
		if failed != nil {
			return nil, failed
		}
		var page []map[string]json.RawMessage
		if json.Unmarshal(members[member], &page) != nil {
			return nil, &Error{Kind: ErrSchema, Reason: "its " + member + " are no list", Malformed: true}
		}
		for _, entry := range page {
			var id string
			raw, err := json.Marshal(entry)
			if err != nil || json.Unmarshal(entry[name], &id) != nil || id == "" || len(raw) > maxEntry || visible.Line(id, maxURI) != id || intents.Unambiguous(raw) != nil {
				continue
			}
			size += len(raw)
			out = append(out, raw)
		}
		if len(out) > MaxTools || size > maxListing {
			return nil, &Error{Kind: ErrTooLarge, Reason: fmt.Sprintf("the server lists more than %d %s or %d bytes of them", MaxTools, member, maxListing)}
		}
		last := at.Params.Cursor
		if json.Unmarshal(members["nextCursor"], &at.Params.Cursor) != nil || slices.Contains([]wire.Cursor{"", last}, at.Params.Cursor) {
			return out, nil //nolint:nilerr // a malformed cursor ends the list
		}
	}
	return out, nil
}
