package gateway

import (
	"context"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
)

// skillScheme and the id of a skill make the URI of its document.
const skillScheme = "skill://"

// documentsOf are the documents of skills that a tenant has.
func (s *mcpServers) documentsOf(ctx context.Context, tenant string) ([]agents.SkillDocument, error) {
	if s.g.cfg.Registry == nil {
		return nil, nil
	}
	return s.g.cfg.Registry.SkillDocuments(ctx, tenant)
}

// digests are those of the documents' texts.
func digests(documents []agents.SkillDocument) (out []string) {
	for _, d := range documents {
		out = append(out, intents.Digest([]byte(d.Text)))
	}
	return out
}

// resources are documents as resources.
func resources(documents []agents.SkillDocument) (out []server.ServerResource) {
	for _, d := range documents {
		text := wire.TextResourceContents{URI: skillScheme + d.ID, MIMEType: "text/markdown", Text: d.Text}
		out = append(out, server.ServerResource{
			Resource: wire.Resource{URI: text.URI, Name: d.ID, Title: d.Title, Description: d.Capability, MIMEType: text.MIMEType},
			Handler: func(context.Context, wire.ReadResourceRequest) ([]wire.ResourceContents, error) {
				return []wire.ResourceContents{text}, nil
			},
		})
	}
	return out
}
