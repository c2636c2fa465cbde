package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// Bounds of one server's declarations, all pages together. Each is far above what a
// model could choose from.
const (
	maxPages   = 100
	MaxTools   = 1000
	maxListing = 8 << 20          // bytes, as JSON
	listTime   = 30 * time.Second // for all pages
)

// Manifests asks the server for all its tools, every page, in its order. A
// tool that cannot be used is in the list with Err set. Listing has no effect,
// so it is tried again.
func (c *Client) Manifests(ctx context.Context) ([]Manifest, error) {
	list, err := c.list(ctx)
	if err != nil {
		return nil, c.conceal(err)
	}
	out := make([]Manifest, len(list))
	for i, t := range list {
		out[i] = t.Manifest
	}
	return out, nil
}

// list fetches the tools and remembers them for Call. Concurrent callers share a listing, which
// continues when one of them gives up.
func (c *Client) list(ctx context.Context) ([]*tool, error) {
	done := c.listing.DoChan("", func() (any, error) {
		var list []*tool
		failed := c.attempt(c.life, true, func() (e *Error) {
			list, e = c.listOnce(c.life)
			return e
		})
		if failed != nil {
			return nil, failed
		}
		return list, nil
	})
	select {
	case got := <-done:
		list, _ := got.Val.([]*tool)
		return list, got.Err
	case <-ctx.Done():
		return nil, &Error{Kind: ErrUnavailable, Reason: "it has not listed its tools in time", Undelivered: true, Err: ctx.Err()}
	}
}

func (c *Client) listOnce(ctx context.Context) ([]*tool, *Error) {
	cn, err := c.acquire(ctx)
	if err != nil {
		return nil, asError(err)
	}
	defer c.release(cn)
	list, failed := c.pages(ctx, cn)
	if failed != nil {
		return nil, failed
	}
	if t := c.reader(cn); t != nil {
		list = append(list, t)
	}
	known := make(map[string]*tool, len(list))
	list = slices.DeleteFunc(list, func(t *tool) bool {
		first, twice := known[t.Name]
		switch {
		case t.Name == "": // it cannot be called; Err says why
		case !twice:
			known[t.Name] = t
		case first.Digest() == t.Digest():
			return true // a tool that is listed twice is one
		default: // nobody can say which of them a call means
			t.Err = &Error{Kind: ErrSchema, Tool: t.Name, Reason: "the server declares two tools with this name"}
			first.Err = t.Err
		}
		return false
	})
	if list, failed = c.serviceSkills(ctx, list); failed != nil {
		return nil, failed
	}
	clear(known)
	for _, t := range list {
		if t.Name != "" {
			known[t.Name] = t
		}
	}
	c.mu.Lock()
	if c.conn == cn {
		c.tools = known
	}
	c.mu.Unlock()
	return list, nil
}

func (c *Client) pages(ctx context.Context, cn *conn) ([]*tool, *Error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var list []*tool
	var cursor wire.Cursor
	left := int64(maxListing)
	for range maxPages {
		page, failed := c.page(ctx, cn, cursor, left)
		if failed != nil {
			return nil, failed
		}
		left -= page.size
		if left < 0 || len(list)+len(page.Tools) > MaxTools { // before any is compiled
			return nil, &Error{Kind: ErrTooLarge, Reason: fmt.Sprintf("the server declares more than %d tools or %d bytes of them", MaxTools, maxListing)}
		}
		for _, raw := range page.Tools {
			list = append(list, parseTool(raw, c.src))
		}
		if page.Next == "" {
			return list, nil
		}
		if page.Next == cursor {
			return nil, &Error{Kind: ErrSchema, Reason: "the list of tools repeats its page"}
		}
		cursor = page.Next
	}
	return nil, &Error{Kind: ErrTooLarge, Reason: fmt.Sprintf("the list of tools has more than %d pages", maxPages)}
}

type toolPage struct {
	Tools []json.RawMessage `json:"tools"`
	Next  wire.Cursor       `json:"nextCursor"`
	size  int64
}

// page reads a result of at most most bytes, as received: the library's own type would
// lose parts of the schemas, and one malformed tool would hide all others.
func (c *Client) page(ctx context.Context, cn *conn, cursor wire.Cursor, most int64) (toolPage, *Error) {
	ctx, st := withState(ctx)
	st.most = most
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	req := wire.ListToolsRequest{}
	req.Params.Cursor = cursor
	_, err := cn.rpc.ListToolsByPage(ctx, req)
	raw := st.result.Load()
	if err != nil && (raw == nil || st.rpc.Load() != nil) {
		e, _ := c.failed(ctx, st, err, cn, true)
		if e.Retryable() || errors.Is(e.Kind, ErrTool) {
			c.drop(cn)
		}
		return toolPage{}, e
	}
	page := toolPage{size: int64(len(*raw))}
	if page.size > most {
		return page, nil // the caller refuses it
	}
	if err := json.Unmarshal(*raw, &page); err != nil {
		return toolPage{}, &Error{Kind: ErrSchema, Reason: "the list of tools is malformed", Err: err}
	}
	return page, nil
}
