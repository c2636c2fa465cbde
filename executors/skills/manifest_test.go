package skills_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
)

// A manifest is all that a planner needs.
func TestManifestIsWhole(t *testing.T) {
	const input, output = `{"type":"object","properties":{"q":{"type":"string"}}}`, `{"type":"object","properties":{"n":{"type":"integer"}}}`
	s := newSite(t, serverOf(tool{name: "x", description: "Does it.", input: input, output: output, handle: answer(`{"n":1}`, "")}))
	b := open(t, map[string]*site{"s": s})
	in := executortest.Intent{Type: "skill.load", NoScope: true, Args: catalog.SkillLoad{Skill: "x"}}
	in.Ticket.Pins = b.pins(t, "idempotent")
	var m catalog.Manifest
	b.Must(t, in, &m)
	if m.Name != "x" || m.Description != "Does it." || len(m.InputSchema) == 0 || len(m.OutputSchema) == 0 || m.ExecutionMode == "" || m.Endpoint == "" || m.Effect != catalog.Idempotent {
		t.Errorf("%+v", m)
	}
}

// Every call names the user of the ticket and the skills of the step to the
// server, whatever the arguments say, and every call is told, also one that
// failed.
func TestEveryCallNamesItsPrincipal(t *testing.T) {
	var seen map[string]any
	s := newSite(t, serverOf(tool{name: "x", description: "Does it.", handle: func(_ context.Context, req wire.CallToolRequest) (*wire.CallToolResult, error) {
		if req.Params.Meta != nil {
			seen = req.Params.Meta.AdditionalFields
		}
		return wire.NewToolResultError("no such outlet"), nil
	}}))
	b := open(t, map[string]*site{"s": s})
	in := call(b.pins(t, "pure"), "x", map[string]any{"principal": "mallory"})
	in.Ticket.Scope.Skills = []string{"x", "y"}
	r := b.Do(t, in)
	if seen["aob.dev/principal"] != b.Fill(in).Ticket.Actor.UserID || cmp.Diff([]any{"x", "y"}, seen["aob.dev/allowed_skills"]) != "" {
		t.Errorf("the server was told %v", seen)
	}
	if event := executortest.EventPayload(t, r, "skill.called"); event["skill_id"] != "x" || event["large_response_triggered"] != false {
		t.Errorf("%v", event)
	}
}
