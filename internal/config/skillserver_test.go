package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSkillServers: entries with members and short ones stand in one list.
func TestSkillServers(t *testing.T) {
	c := loaded(t, "skills: [https://a/mcp, {name: b, url: https://b/mcp}, npx -y server, {name: d}]\n", map[string]string{})
	if d := cmp.Diff([]string{"https://a/mcp", "npx -y server"}, c.Skills); d != "" {
		t.Errorf("short entries (-want +got):\n%s", d)
	}
	if len(c.SkillServers) != 2 || c.SkillServers[1].Node.Content[1].Value != "d" {
		t.Fatalf("servers with members: %+v", c.SkillServers)
	}
}

// TestSkillServersBeside: a variable takes the place of the short entries, and leaves
// the others.
func TestSkillServersBeside(t *testing.T) {
	c := loaded(t, "skills: [https://a/mcp, {name: b, url: https://b/mcp}]\n", map[string]string{"WRIT_SKILLS": "https://c/mcp"})
	if d := cmp.Diff([]string{"https://c/mcp"}, c.Skills); d != "" || len(c.SkillServers) != 1 {
		t.Errorf("%d servers with members, short ones (-want +got):\n%s", len(c.SkillServers), d)
	}
}
