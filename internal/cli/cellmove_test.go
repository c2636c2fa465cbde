package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// TestMoveTenantRefuses: the command names the cell and the setting that keep it from beginning.
func TestMoveTenantRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	settings := "bus: [nats://127.0.0.1:1]\nbus_keys: " + dir + "\nblobs: s3://blobs?endpoint=http://127.0.0.1:1\n"
	whole := file("whole.yaml", settings+"documents: http://127.0.0.1:1\n")
	from, to := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	for name, tt := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"no new cell":    {[]string{"--config", whole, "--instance", "m"}, ExitUsage, []string{"to-config"}},
		"no file":        {[]string{"--config", whole, "--instance", "m", "--to-config", filepath.Join(dir, "none.yaml")}, ExitMalformed, []string{"none.yaml"}},
		"no documents":   {[]string{"--config", whole, "--instance", "m", "--to-config", file("part.yaml", settings)}, ExitUsage, []string{to, "--documents URL"}},
		"no name":        {[]string{"--config", whole, "--to-config", whole}, ExitUsage, []string{from, "instance"}},
		"no credentials": {[]string{"--config", whole, "--instance", "m", "--to-config", whole}, ExitNo, []string{"the old cell", "blobs: no credentials"}},
		"none to stay":   {[]string{"--config", whole, "--instance", "m", "--to-config", whole, "--stay"}, ExitNo, []string{"the old cell", "blobs: no credentials"}},
	} {
		got := writ(t, append([]string{"cell", "move-tenant", "acme", from, to}, tt.args...)...)
		for _, says := range tt.says {
			if got.code != tt.code || !strings.Contains(got.err, says) {
				t.Errorf("%s: exit %d: %s, want %d: %s", name, got.code, got.err, tt.code, says)
			}
		}
	}
}

// The list of tenants says where each lives.
func TestTenantsListedByPlace(t *testing.T) {
	came := &catalog.Came{Origin: "writ/old"}
	for want, at := range map[string]state.Place{
		"": {}, "\thas moved to writ/new": {To: "writ/new", Came: came, Arrived: true}, "\tcame from writ/old": {Came: came, Arrived: true}, "\thas not arrived from writ/old": {Came: came},
	} {
		if got := render("tenants", state.TenantRows{Tenant: "acme", Place: at}); got != "acme\t0 roles, 0 users, 0 API keys, 0 skills"+want+"\n" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
