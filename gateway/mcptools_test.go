package gateway

import (
	"strings"
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/state/agents"
)

// TestMCPDocuments: the documents of skills are resources, in both eras of the protocol.
func TestMCPDocuments(t *testing.T) {
	for era, option := range eras {
		t.Run(era, func(t *testing.T) {
			w, _ := mcpWorld(t, nil, func(c *Config, _ *pace) { c.Registry = fakeRegistry{} })
			c := w.mcpClient(option)
			list, err := c.ListResources(t.Context(), wire.ListResourcesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			want := agents.SkillDocuments()
			if len(want) == 0 || len(list.Resources) != len(want) {
				t.Fatalf("%d documents, %d resources", len(want), len(list.Resources))
			}
			for i, r := range list.Resources {
				if r.URI != "skill://"+want[i].ID || r.Title != want[i].Title || r.Description == "" || r.MIMEType != "text/markdown" {
					t.Errorf("%+v", r)
				}
				got, err := c.ReadResource(t.Context(), wire.ReadResourceRequest{Params: wire.ReadResourceParams{URI: r.URI}})
				if err != nil || len(got.Contents) != 1 {
					t.Fatalf("%s: %+v, %v", r.URI, got, err)
				}
				if text, ok := got.Contents[0].(wire.TextResourceContents); !ok || text.Text != want[i].Text || !strings.Contains(text.Text, "## Capability") {
					t.Errorf("%s: %+v", r.URI, got)
				}
			}
			if _, err := c.ReadResource(t.Context(), wire.ReadResourceRequest{Params: wire.ReadResourceParams{URI: "skill://none"}}); err == nil {
				t.Error("a document that is not there was read")
			}
		})
	}
}
