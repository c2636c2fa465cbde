package mcp

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"aob.dev/writ/executors/sandbox"
)

// parsed reads a server from YAML.
func parsed(t *testing.T, text string, env map[string]string) (Source, error) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return ParseServer(doc.Content[0], func(name string) string { return env[name] })
}

// TestParseServer: values come from where they are said to be.
func TestParseServer(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("of the file 0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"CRM_TOKEN": "of the variable", "OTHER": "another"}
	for text, want := range map[string]Source{
		`
name: crm
url: https://crm.example/mcp
headers: {Authorization: "Bearer ${CRM_TOKEN}", X-Team: sales}
timeout_sec: 10
timeouts: {render: 86400}
tenants: [acme, default]
rpm: 60
trust: true
principal_hmac: "${CRM_TOKEN}=="
`: {URL: "https://crm.example/mcp", Settings: Settings{
			Name: "crm", Header: http.Header{"Authorization": {"Bearer of the variable"}, "X-Team": {"sales"}}, Timeout: 10 * time.Second, Timeouts: map[string]time.Duration{"render": MaxTimeout}, RPM: 60,
			Tenants: []string{"acme", "default"}, Trust: true, PrincipalKey: []byte("of the variable=="),
			Secrets: []string{"of the variable", "Bearer of the variable", "sales", "of the variable", "of the variable=="},
		}},
		`
name: git
command: mcp-server-git --repository "/srv/the repo"
env: &values {LEVEL: debug, TOKEN: {file: ` + secret + `}, BOTH: "${CRM_TOKEN}/${OTHER}"}
effects: {commit: once}
files: [{path: /srv/docs}, {path: /srv/repo, mode: rw}]
network: off
isolation: none
principal_hmac: {file: ` + secret + `}
`: {Command: []string{"mcp-server-git", "--repository", "/srv/the repo"}, Settings: Settings{
			Name: "git", Env: []string{"LEVEL=debug", "TOKEN=of the file 0123", "BOTH=of the variable/another"}, Effects: map[string]string{"commit": "once"},
			Files: []sandbox.ServerFile{{Path: "/srv/docs"}, {Path: "/srv/repo", Write: true}}, NoNetwork: true, Plain: true, PrincipalKey: []byte("of the file 0123"),
			Secrets: []string{"of the file 0123", "of the variable", "another", "of the file 0123", "of the file 0123"}, SecretFiles: []string{secret, secret},
		}},
		`{name: a, command: [server, "two words", ""], network: on, isolation: box, trust: false}`: {Command: []string{"server", "two words", ""}, Settings: Settings{Name: "a"}},
	} {
		got, err := parsed(t, text, env)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Source{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

// TestParseServerRefuses: each refusal names the member and what to do, and no value.
func TestParseServerRefuses(t *testing.T) {
	for _, tt := range []struct{ name, entry, says string }{
		{"an unknown member", "{name: a, url: https://a/, header: {X: hunter2}}", ".header: there is no such member: there are auth, client_id, client_secret, command, effects,"},
		{"no name", "{url: https://a/}", ".name: is missing"},
		{"neither url nor command", "{name: a}", ": has neither url nor command: give"},
		{"both", "{name: a, url: https://a/, command: x}", ": has both url and command: leave one"},
		{"headers of a command", "{name: a, command: x, headers: {X: hunter2}}", ".headers: only a server with url has it, and this one has command: leave it out"},
		{"env of a URL", "{name: a, url: https://a/, env: {X: hunter2}}", ".env: only a server with command has it"},
		{"files of a URL", "{name: a, url: https://a/, files: [{path: /x}]}", ".files: only"},
		{"network of a URL", "{name: a, url: https://a/, network: off}", ".network: only"},
		{"a member twice", "{name: a, url: https://a/, url: https://b/}", ".url: stands twice"},
		{"a header twice", "{name: a, url: https://a/, headers: {X: hunter2, X: hunter2}}", ".headers.X: stands twice"},
		{"a header in two spellings", "{name: a, url: https://a/, headers: {X: hunter2, x: hunter2}}", ".headers.x: X stands twice"},
		{"a header of the protocol", "{name: a, url: https://a/, headers: {Mcp-Session-Id: hunter2}}", ".headers.Mcp-Session-Id: writ sets"},
		{"a header of two lines", `{name: a, url: https://a/, headers: {X: "hunter2\n"}}`, ".headers.X: a header's value"},
		{"a header's name that is none", `{name: a, url: https://a/, headers: {"X: hunter2": y}}`, ".headers: name 1 is none: a header's name"},
		{"a variable's name that is none", `{name: a, command: x, env: {Y: z, "X=hunter2": y}}`, ".env: name 2 is none: a variable's name"},
		{"headers that are none", "{name: a, url: https://a/, headers: hunter2}", ".headers: must be a mapping"},
		{"a value that is a list", "{name: a, url: https://a/, headers: {X: [hunter2]}}", ".headers.X: must be one value"},
		{"an empty value", "{name: a, url: https://a/, headers: {X: }}", ".headers.X: must be one value, and not empty"},
		{"another member of a value", "{name: a, url: https://a/, headers: {X: {path: hunter2}}}", ".headers.X.path: there is no such member"},
		{"no file", "{name: a, url: https://a/, headers: {X: {}}}", ".headers.X.file: is missing"},
		{"a file that is not there", "{name: a, url: https://a/, headers: {X: {file: /no/such}}}", ".headers.X.file: open /no/such: no such file or directory: put the value there"},
		{"an empty file", "{name: a, url: https://a/, headers: {X: {file: /dev/null}}}", ".headers.X.file: /dev/null is empty"},
		{"a variable that is not set", `{name: a, url: https://a/, headers: {X: "Bearer ${NO_SUCH}"}}`, ".headers.X: the variable NO_SUCH is not set: set it"},
		{"an open reference", `{name: a, url: https://a/, headers: {X: "${hunter2"}}`, ".headers.X: ${ and } enclose the name of a variable"},
		{"a reference to no name", `{name: a, url: https://a/, headers: {X: "${A B}"}}`, ".headers.X: ${ and } enclose the name of a variable"},
		{"files that are none", "{name: a, command: x, files: /x}", ".files: must be a list"},
		{"a file at a relative path", "{name: a, command: x, files: [{path: x}]}", ".files[0].path: must be an absolute path"},
		{"a file without a path", "{name: a, command: x, files: [{mode: rw}]}", ".files[0].path: must be an absolute path"},
		{"an unknown mode", "{name: a, command: x, files: [{path: /x, mode: w}]}", ".files[0].mode: must be ro or rw"},
		{"another member of files", "{name: a, command: x, files: [{path: /x, write: true}]}", ".files[0].write: there is no such member"},
		{"tenants that are none", "{name: a, command: x, tenants: acme}", ".tenants: must be a list of tenants"},
		{"no tenants", "{name: a, command: x, tenants: []}", ".tenants: must be a list of tenants: leave it out for all"},
		{"a tenant that is none", "{name: a, command: x, tenants: [a, {b: c}]}", ".tenants[1]: must be one value"},
		{"a short key", "{name: a, command: x, principal_hmac: hunter2}", ".principal_hmac: principal_hmac is a secret of at least"},
		{"a key that is none", "{name: a, command: x, principal_hmac: [hunter2]}", ".principal_hmac: must be one value"},
		{"callers' keys by plain HTTP", "{name: a, url: http://a.example/, forward_api_key: true}", ".url: callers' keys are sent by https alone"},
		{"callers' keys beside OAuth", "{name: a, url: https://a/, auth: user, forward_api_key: true}", ".forward_api_key: cannot be combined with auth"},
		{"callers' keys beside another", "{name: a, url: https://a/, headers: {X-Api-Key: hunter2}, forward_api_key: true}", ".forward_api_key: headers has X-Api-Key"},
		{"a URL as command", "{name: a, command: https://x/}", ".command: a URL is no command: write url"},
		{"a command as url", "{name: a, url: server}", ".url: server: only http and https URLs"},
		{"a list without program", `{name: a, command: []}`, ".command: names no program"},
	} {
		_, err := parsed(t, tt.entry, nil)
		if err == nil || !strings.HasPrefix(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error = %v, want %q", tt.name, err, tt.says)
		}
	}
}
