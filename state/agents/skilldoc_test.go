package agents

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const crmSkill = "# CRM\n\n## Capability\nReads and closes\ntickets.\n\n## MCP Tools\n\n| Tool | Input Schema | Output | Rate Limit RPM |\n|---|---|---|---|\n" +
	"| `crm.list` | {status: open\\|closed} | tickets | 60 |\n| close | {id} | – | 6 RPM |\n| crm.show | {id} | a ticket | – |\n\n" +
	"## Usage Examples\n```\n# no title\n## no section\n```\n## Error Handling\nTell.\n## Security Considerations\nNone.\n"

func crmRegistry(t *testing.T, text string) (*Revision, error) {
	t.Helper()
	return Read(fstest.MapFS{"agents/a.yaml": {Data: []byte("name: a\ndescription: d\n")}, "skills/crm/skill.md": {Data: []byte(text)}}, environment)
}

// TestSkillDocuments: the documents of a registry are laid over the built-in ones, with tools
// and rates; the lowest rate of all layers counts, and no document loosens another's.
func TestSkillDocuments(t *testing.T) {
	r, err := crmRegistry(t, crmSkill)
	if err != nil {
		t.Fatal(err)
	}
	want := SkillDocument{"crm", "CRM", "Reads and closes tickets.", []SkillTool{{"crm.list", 60}, {"close", 6}, {"crm.show", 0}}, crmSkill}
	if d := cmp.Diff([]SkillDocument{want}, r.Skills); d != "" {
		t.Error(d)
	}
	nearer, err := crmRegistry(t, strings.Replace(strings.Replace(crmSkill, "| 6 RPM |", "| 600 |", 1), "| 60 |", "| 1 |", 1))
	if err != nil {
		t.Fatal(err)
	}
	for skill, rpm := range map[string]int{"crm.list": 1, "crm.close": 6, "git.close": 6, "crm.show": 0, "xclose": 0, "crm.relist": 0} {
		if got := Rate(skill, r, nearer); got != rpm {
			t.Errorf("%s: %d calls a minute, want %d", skill, got, rpm)
		}
	}
	var ids []string
	for _, d := range SkillDocuments(r, nearer) {
		ids = append(ids, d.ID)
		if d.Title == "" || d.Capability == "" || len(d.Tools) == 0 {
			t.Errorf("%+v", d)
		}
		if d.ID == "crm" && d.Tools[1].RPM != 600 {
			t.Errorf("the nearer document: %+v", d.Tools)
		}
	}
	if !slices.Equal(ids, []string{"circuit-breaker", "clarification", "crm", "routing", "session-management"}) {
		t.Error(ids)
	}
	for _, d := range builtinSkills() {
		if _, wrong := skillDocument("skills/"+d.ID+"/skill.md", []byte(d.Text)); len(wrong) > 0 {
			t.Error(wrong)
		}
	}
}

// TestSkillFaults: each fault in a document is reported with its line. A faulty document in a
// revision of an old log is still read.
func TestSkillFaults(t *testing.T) {
	for said, change := range map[string][2]string{
		`skills/crm/skill.md:1: has no title: begin with # and the name of the skill`:                        {"# CRM", "CRM"},
		`skills/crm/skill.md: has no section "## Error Handling"`:                                            {"## Error Handling\nTell.\n", ""},
		`skills/crm/skill.md:20: the section "Error Handling" says nothing`:                                  {"Tell.", ""},
		`skills/crm/skill.md:20: the section "Capability" stands there twice: make them one`:                 {"## Error Handling", "## Capability\nMore.\n## Error Handling"},
		`skills/crm/skill.md:11: the rate "often" is no number of calls a minute, such as 60, nor –`:         {"| 60 |", "| often |"},
		`skills/crm/skill.md:12: has 3 columns: there are Tool, Input Schema, Output, Rate Limit`:            {"| {id} | – |", "| – |"},
		`skills/crm/skill.md:12: "close it" is no name of a tool`:                                            {"| close |", "| close it |"},
		`skills/crm/skill.md:9: the column "Name" is in the place of "Tool"`:                                 {"| Tool |", "| Name |"},
		`skills/crm/skill.md:7: names no tool: it has a table | Tool | Input Schema | Output | Rate Limit |`: {crmSkill[strings.Index(crmSkill, "| Tool"):strings.Index(crmSkill, "## Usage")], "None.\n"},
	} {
		text := strings.Replace(crmSkill, change[0], change[1], 1)
		_, err := crmRegistry(t, text)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Error() != said {
			t.Errorf("%v\nwant %s", err, said)
		}
		if _, err := open(map[string][]byte{"skills/crm/skill.md": []byte(text)}); err == nil || err.Error() != said {
			t.Errorf("pushed as it is: %v\nwant %s", err, said)
		}
	}
}
