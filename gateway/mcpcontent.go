package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// Bounds of the bytes of content, in bytes: what a result of a tool has in itself, and what one
// reading of a resource returns. A larger file of a result is a link to a resource.
const (
	maxInlineContent = 1 << 20
	maxReadContent   = 24 << 20
)

// fileScheme makes the URI of a file of a result: writ-result://<hex of intent_id>/<number of the part>.
const fileScheme = "writ-result://"

// sent is a part of content that is sent as its JSON.
type sent struct {
	wire.Content
	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (s sent) MarshalJSON() ([]byte, error) { return s.raw, nil }

// output returns a tool's output: content as its server sent it, as far as the record and the files
// of the step have it; else objects as structured content, too, and texts unchanged.
func (c *mcpCall) output(ctx context.Context, a *intents.Answer) (*wire.CallToolResult, error) {
	var called catalog.SkillCallResult
	_ = json.Unmarshal(a.Outcome.Result, &called)
	if called.Reference != nil {
		return ownResult(map[string]any{"status": mcpByReference, "from": a.IntentID, "size_bytes": called.SizeBytes, "sample": called.Sample}), nil
	}
	out := called.Output
	if out == nil { // of another intent
		out = a.Outcome.Result
	}
	if called.Content != nil {
		r, err := c.content(ctx, a.IntentID, called)
		if !errors.Is(err, ErrNoArtifact) {
			return r, err
		}
	}
	var text string
	if json.Unmarshal(out, &text) != nil {
		text = string(out)
	}
	r := &wire.CallToolResult{Content: []wire.Content{wire.NewTextContent(text)}}
	if len(out) > 0 && out[0] == '{' {
		r.StructuredContent = out
	}
	return r, nil
}

// content returns a result with the parts that a server has sent. An incomplete one has its status
// as structured content.
func (c *mcpCall) content(ctx context.Context, id string, called catalog.SkillCallResult) (*wire.CallToolResult, error) {
	r := &wire.CallToolResult{}
	left := int64(maxInlineContent)
	for n, raw := range called.Content {
		var part map[string]any
		if err := json.Unmarshal(raw, &part); err != nil {
			return nil, err
		}
		if of, member := catalog.PartBytes(part); of != nil {
			f, ok := fileOf(of[member])
			switch {
			case ok && f.SizeBytes > left:
				part = linkTo(id, n, part, f)
			case ok:
				left -= f.SizeBytes
				if err := c.s.servers.g.fill(ctx, c.tenant, of, member, f); err != nil {
					return nil, err
				}
			}
		}
		c.addressed(part)
		filled, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		r.Content = append(r.Content, sent{wire.TextContent{}, filled})
	}
	var own struct {
		Status string
		Result json.RawMessage
		Files  []json.RawMessage
	}
	_ = json.Unmarshal(called.Output, &own)
	switch {
	case own.Status == catalog.Incomplete:
		r.StructuredContent = called.Output
	case !called.Structured:
	case own.Files != nil && len(own.Result) > 0 && own.Result[0] == '{':
		r.StructuredContent = own.Result
	case own.Files == nil && len(called.Output) > 0 && called.Output[0] == '{':
		r.StructuredContent = called.Output
	}
	return r, nil
}

// addressed gives a resource of the tool's server the address at which it is read here. What anybody
// can read on the web keeps its own.
func (c *mcpCall) addressed(part map[string]any) {
	of := part
	if inner, ok := part["resource"].(map[string]any); ok {
		of = inner
	}
	uri, ok := of["uri"].(string)
	web := strings.HasPrefix(uri, "https:") || strings.HasPrefix(uri, "http:") || strings.HasPrefix(uri, fileScheme)
	c.s.renewing.Lock()
	defer c.s.renewing.Unlock()
	if i := slices.IndexFunc(c.s.readers, func(r reader) bool { return r.server == c.server }); ok && !web && i >= 0 {
		of["uri"] = c.s.readers[i].uri(uri)
	}
}

// fileOf is the file that a member of a part names instead of having its bytes.
func fileOf(v any) (f catalog.ContentFile, ok bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return f, false
	}
	raw, err := json.Marshal(m)
	return f, err == nil && json.Unmarshal(raw, &f) == nil && f.FileID != ""
}

// fill puts the bytes of a file into a part: as they are for a text, else as base64.
func (g *Gateway) fill(ctx context.Context, tenant string, of map[string]any, member string, f catalog.ContentFile) error {
	if g.cfg.Artifacts == nil {
		return ErrNoArtifact
	}
	r, err := g.cfg.Artifacts.Open(ctx, tenant, f)
	if err != nil {
		return err
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, maxReadContent+1))
	switch {
	case err != nil:
		return err
	case len(raw) > maxReadContent || int64(len(raw)) != f.SizeBytes:
		return fmt.Errorf("file %s has %d bytes, and not %d", f.FileID, len(raw), f.SizeBytes)
	case member == "text":
		of[member] = string(raw)
	default:
		of[member] = base64.StdEncoding.EncodeToString(raw)
	}
	return nil
}

// linkTo stands for a part that is too large for a result.
func linkTo(id string, n int, part map[string]any, f catalog.ContentFile) map[string]any {
	hex := strings.TrimPrefix(id, "sha256:")
	link := map[string]any{"type": "resource_link", "uri": fmt.Sprintf("%s%s/%d", fileScheme, hex, n), "name": fmt.Sprintf("part-%d", n+1), "size": f.SizeBytes}
	for _, name := range []string{"mimeType", "annotations"} {
		of := part
		if inner, ok := part["resource"].(map[string]any); ok && name == "mimeType" {
			of = inner
		}
		if v, ok := of[name]; ok {
			link[name] = v
		}
	}
	return link
}

// readFile reads a file of a result, as long as the plan of its call has it.
func (g *Gateway) readFile(ctx context.Context, who actor, uri string) (map[string]any, error) {
	gone := problem.New(intents.NotFound, "/uri", "no such file, or its session has ended: call the tool again")
	var n int
	hex, number, _ := strings.Cut(strings.TrimPrefix(uri, fileScheme), "/")
	if _, err := fmt.Sscanf(number, "%d", &n); err != nil || !intents.IsDigest("sha256:"+hex) {
		return nil, gone
	}
	a, err := g.readIntent(ctx, who, "sha256:"+hex)
	if err != nil {
		return nil, err
	}
	var called catalog.SkillCallResult
	var part map[string]any
	if a.Outcome == nil || json.Unmarshal(a.Outcome.Result, &called) != nil || n < 0 || n >= len(called.Content) || json.Unmarshal(called.Content[n], &part) != nil {
		return nil, gone
	}
	of, member := catalog.PartBytes(part)
	f, ok := fileOf(of[member])
	if !ok {
		return nil, gone
	}
	out := map[string]any{"uri": uri}
	for _, m := range []map[string]any{part, of} {
		if t, ok := m["mimeType"]; ok {
			out["mimeType"] = t
		}
	}
	to := "blob"
	if member == "text" {
		to = member
	}
	if err := g.fill(ctx, who.tenant, out, to, f); errors.Is(err, ErrNoArtifact) {
		return nil, gone
	} else if err != nil {
		return nil, err
	}
	return out, nil
}
