package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/gateway"
)

// TestLook: the stores answer, and each agent says what it is; of a remote one no more than
// its host is told. A document of the directory is there for every tenant, and its rate counts.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "agents"), 0o700))
	must(t, os.MkdirAll(filepath.Join(dir, "skills", "crm"), 0o700))
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("agents/desk.yaml", "name: desk\ndescription: d\n")
	write("agents/far.yaml", "agent_id: far\ndisplay_name: Far\ndescription: d\nendpoint: https://a.example:8443/mcp?key=secret\ntype: mcp\nis_default: true\nconfidence_threshold: 0\nclarification_required: false\nexamples: [hello]\n")
	write("skills/crm/skill.md", "# CRM\n## Capability\nReads.\n## MCP Tools\n| Tool | Input Schema | Output | Rate Limit |\n|-|-|-|-|\n| crm.list | {} | list | 7 |\n## Usage Examples\nx\n## Error Handling\nx\n## Security Considerations\nx\n")
	cfg := config(t.TempDir())
	cfg.Agents = dir
	n := open(t, cfg)
	run(t, n)
	d, err := n.Look(t.Context(), "default")
	stores, found := d.Stores, d.Agents
	if err != nil || len(d.Breakers) != 0 || len(stores) != 3 || stores["journal"] != gateway.Up || stores["documents"] != gateway.Up || stores["blobs"] != gateway.Up {
		t.Errorf("%v, %v", stores, err)
	}
	kinds := map[string]gateway.AgentHealth{}
	for _, a := range found {
		kinds[a.Name] = a
	}
	if kinds["desk"].Kind != "local" || kinds["planner"].Kind != "built-in" || kinds["far"] != (gateway.AgentHealth{Name: "far", DisplayName: "Far", Kind: "remote", Endpoint: "a.example:8443"}) {
		t.Errorf("%+v", found)
	}
	docs, err := n.SkillDocuments(t.Context(), "default")
	if err != nil || len(docs) != 5 || docs[2].ID != "crm" || !strings.HasPrefix(docs[2].Text, "# CRM") {
		t.Errorf("%+v, %v", docs, err)
	}
	for skill, rpm := range map[string]int{"crm.list": 7, "crm.close": 0} {
		if got, err := n.rateOf(t.Context(), "default", skill); got != rpm || err != nil {
			t.Errorf("%s: %d, %v", skill, got, err)
		}
	}
}
