package gateway

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/state/agents"
)

// listSchemas is GET /schemas/: ?name=, ?kind=.
func (g *Gateway) listSchemas(c *gin.Context, a actor) error {
	if c.Query("kind") == catalog.KindWorkflow {
		got, err := read[catalog.SchemaListResult](c.Request.Context(), g, a, readapi.Agents, chosen(c, "name", "kind"))
		return respond(c, append([]catalog.SchemaRow{}, got.Schemas...), err)
	}
	rows, err := g.schemas(c.Request.Context(), a, c.Query("name"))
	return respond(c, rows, err)
}

// schemas returns all agents of the tenant, the built-in ones first, or the one with a name.
func (g *Gateway) schemas(ctx context.Context, a actor, name string) ([]catalog.SchemaRow, error) {
	q := url.Values{}
	if name != "" {
		q.Set("name", name)
	}
	got, err := read[catalog.SchemaListResult](ctx, g, a, readapi.Agents, q)
	rows := []catalog.SchemaRow{}
	for _, d := range agents.Builtins() {
		replaced := slices.ContainsFunc(got.Schemas, func(r catalog.SchemaRow) bool { return r.ID == d.Name })
		if name != "" && d.Name != strings.TrimPrefix(name, "writ/") || replaced {
			continue
		}
		row, err := d.Row()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return append(rows, got.Schemas...), err
}

// putSchema is PUT /schemas/{name}: it puts an agent of the tenant in force, new or in another version. The intent is
// registry.push, of the revision in force with this agent changed.
func (g *Gateway) putSchema(c *gin.Context, who caller) error {
	doc, _, err := readOrdered(c)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	a, err := g.identify(ctx, who, claim{})
	if err != nil {
		return err
	}
	now, err := askRouter[bus.RegistryReply](ctx, g.cfg.Bus, bus.DirectoryRegistry, bus.RegistryRequest{Tenant: a.tenant})
	if err != nil {
		return err
	}
	tooLarge := problem.New(intents.PayloadTooLarge, "", "the tenant's agents together are too large for an intent; nothing has changed")
	tooLarge.Hint = "have an operator push them: writ registry push DIR"
	if now.Digest != "" && now.Bundle == "" {
		return tooLarge
	}
	next, err := agents.Change(now.Bundle, c.Param("name"), doc)
	var faults agents.Faults
	if errors.As(err, &faults) {
		return problem.New(intents.SchemaInvalid, faults[0].Pointer, faults[0].Reason)
	} else if err != nil {
		return err
	}
	push := catalog.RegistryPush{Revision: now.Revision + 1, Digest: next.Digest()}
	if push.Bundle, err = next.Pack(); err != nil {
		return err
	}
	if push.Bundle == "" {
		return tooLarge
	}
	answer, err := g.submitAt(ctx, a, "registry.push", push, intents.Context{TurnID: newID("turn")})
	if err == nil && answer.Outcome == nil {
		err = unawaited(answer)
	}
	if err != nil {
		return err
	}
	return respond(c, gin.H{"revision": push.Revision, "digest": push.Digest, "intent_id": answer.IntentID}, nil)
}
