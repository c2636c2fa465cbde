package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSkillServers: entries with members and short ones stand in one list, and values
// come from where they are said to be.
func TestSkillServers(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("of the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := loaded(t, `
skills:
  - https://skills.example/mcp
  - name: crm
    url: https://crm.example/mcp
    headers: {Authorization: "Bearer ${CRM_TOKEN}", X-Team: sales}
    timeout_sec: 10
    tenants: [acme, default]
    rpm: 60
    principal_hmac: "${CRM_TOKEN}=="
  - npx -y server
  - name: git
    command: mcp-server-git --repository /srv/repo
    env: &values {LEVEL: debug, TOKEN: {file: `+secret+`}, BOTH: "${CRM_TOKEN}/${OTHER}"}
    effects: {commit: once}
    files: [{path: /srv/docs}, {path: /srv/repo, mode: rw}]
    network: off
    isolation: none
    principal_hmac: {file: `+secret+`}
`, map[string]string{})
	if d := cmp.Diff([]string{"https://skills.example/mcp", "npx -y server"}, c.Skills); d != "" {
		t.Errorf("short entries (-want +got):\n%s", d)
	}
	if got := c.Secrets(); !slices.Contains(got, secret) {
		t.Errorf("secret files are %v", got)
	}
	env := map[string]string{"CRM_TOKEN": "of the variable", "OTHER": "another"}
	var got [][]SkillSetting
	for _, s := range c.SkillServers {
		list, err := s.Resolve(func(name string) string { return env[name] })
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, list)
	}
	want := [][]SkillSetting{
		{
			{Path: ".name", Key: "name", Value: "crm"},
			{Path: ".headers.Authorization", Key: "header", Value: "Authorization=Bearer of the variable", Secrets: []string{"of the variable"}},
			{Path: ".headers.X-Team", Key: "header", Value: "X-Team=sales"},
			{Path: ".timeout_sec", Key: "timeout_sec", Value: "10"},
			{Path: ".tenants[0]", Key: "tenant", Value: "acme"},
			{Path: ".tenants[1]", Key: "tenant", Value: "default"},
			{Path: ".rpm", Key: "rpm", Value: "60"},
			{Path: ".principal_hmac", Key: "principal_hmac", Value: "of the variable==", Secrets: []string{"of the variable"}},
		},
		{
			{Path: ".name", Key: "name", Value: "git"},
			{Path: ".env.LEVEL", Key: "env", Value: "LEVEL=debug"},
			{Path: ".env.TOKEN", Key: "env", Value: "TOKEN=of the file", File: secret, Secrets: []string{"of the file"}},
			{Path: ".env.BOTH", Key: "env", Value: "BOTH=of the variable/another", Secrets: []string{"of the variable", "another"}},
			{Path: ".effects.commit", Key: "effect", Value: "commit:once"},
			{Path: ".files[0].path", Key: "files", Value: "/srv/docs"},
			{Path: ".files[1].path", Key: "files", Value: "/srv/repo:rw"},
			{Path: ".network", Key: "network", Value: "off"},
			{Path: ".isolation", Key: "isolation", Value: "none"},
			{Path: ".principal_hmac", Key: "principal_hmac", Value: "of the file", File: secret, Secrets: []string{"of the file"}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("settings (-want +got):\n%s", d)
	}
	if a, b := c.SkillServers[0], c.SkillServers[1]; a.URL != "https://crm.example/mcp" || a.Command != "" || b.URL != "" || b.Command != "mcp-server-git --repository /srv/repo" {
		t.Errorf("servers are at %q, %q, %q, %q", a.URL, a.Command, b.URL, b.Command)
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

// TestSkillServersRefused: each refusal names the file, the key and what to do, and no
// value.
func TestSkillServersRefused(t *testing.T) {
	tests := []struct{ name, entry, says string }{
		{"an unknown member", "{name: a, url: https://a/, header: {X: hunter2}}", "skills[0].header: there is no such member: there are name, url,"},
		{"no name", "{url: https://a/}", "skills[0].name: is missing"},
		{"two of one name", "{name: a, url: https://a/}, {name: a, url: https://b/}", `skills[1].name: "a" is the name of skills[0] already: give each`},
		{"neither url nor command", "{name: a}", "skills[0]: has neither url nor command: give"},
		{"both", "{name: a, url: https://a/, command: x}", "skills[0]: has both url and command: leave one"},
		{"headers of a command", "{name: a, command: x, headers: {X: hunter2}}", "skills[0].headers: only a server with url has it, and this one has command: leave it out"},
		{"env of a URL", "{name: a, url: https://a/, env: {X: hunter2}}", "skills[0].env: only a server with command has it"},
		{"files of a URL", "{name: a, url: https://a/, files: [{path: /x}]}", "skills[0].files: only"},
		{"network of a URL", "{name: a, url: https://a/, network: off}", "skills[0].network: only"},
		{"a member twice", "{name: a, url: https://a/, url: https://b/}", "skills[0].url: stands twice"},
		{"a header twice", "{name: a, url: https://a/, headers: {X: hunter2, X: hunter2}}", "skills[0].headers.X: stands twice"},
		{"a header's name that is none", `{name: a, url: https://a/, headers: {"X: hunter2": y}}`, "skills[0].headers: name 1 is none: a header's name"},
		{"a variable's name that is none", `{name: a, command: x, env: {Y: z, "X=hunter2": y}}`, "skills[0].env: name 2 is none: a variable's name"},
		{"headers that are none", "{name: a, url: https://a/, headers: hunter2}", "skills[0].headers: must be a mapping"},
		{"a value that is a list", "{name: a, url: https://a/, headers: {X: [hunter2]}}", "skills[0].headers.X: must be one value"},
		{"an empty value", "{name: a, url: https://a/, headers: {X: }}", "skills[0].headers.X: must be one value, and not empty"},
		{"another member of a value", "{name: a, url: https://a/, headers: {X: {path: hunter2}}}", "skills[0].headers.X.path: there is no such member"},
		{"no file", "{name: a, url: https://a/, headers: {X: {}}}", "skills[0].headers.X.file: is missing"},
		{"files that are none", "{name: a, command: x, files: /x}", "skills[0].files: must be a list"},
		{"tenants that are none", "{name: a, command: x, tenants: acme}", "skills[0].tenants: must be a list of tenants"},
		{"no tenants", "{name: a, command: x, tenants: []}", "skills[0].tenants: must be a list of tenants: leave it out for all"},
		{"a tenant that is none", "{name: a, command: x, tenants: [a, {b: c}]}", "skills[0].tenants[1]: must be one value"},
		{"a key that is none", "{name: a, command: x, principal_hmac: [hunter2]}", "skills[0].principal_hmac: must be one value"},
		{"an unknown mode", "{name: a, command: x, files: [{path: /x, mode: w}]}", `skills[0].files[0].mode: "w" is neither ro nor rw`},
		{"another member of files", "{name: a, command: x, files: [{path: /x, write: true}]}", "skills[0].files[0].write: there is no such member"},
	}
	for _, tt := range tests {
		_, err := load(t, "skills: ["+tt.entry+"]\n", nil)
		if err == nil || !strings.Contains(err.Error(), "writ.yaml: "+tt.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error = %v, which must name the file and %q", tt.name, err, tt.says)
		}
	}
	for value, says := range map[string]string{
		`"Bearer ${NO_SUCH}"`: "the variable NO_SUCH is not set: set it",
		`"${hunter2"`:         "enclose the name of a variable",
		`"${A B}"`:            "enclose the name of a variable",
		"{file: /no/such}":    "no such file or directory: put the value there",
		"{file: /dev/null}":   ".file: /dev/null is empty",
	} {
		c := loaded(t, "skills: [{name: a, url: https://a/, headers: {X: "+value+"}}]\n", nil)
		_, err := c.SkillServers[0].Resolve(func(string) string { return "" })
		if err == nil || !strings.Contains(err.Error(), "writ.yaml: skills[0].headers.X") || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error = %v, want %q", value, err, says)
		}
	}
}
