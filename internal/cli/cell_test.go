package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestServeRefuses: what a process of a cluster needs and does not have is an error that
// names the setting, and what to do.
func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	whole := []string{
		"--bus", "nats://127.0.0.1:1", "--bus-keys", dir, "--instance", "n1", "--keys", dir, "--documents", "http://127.0.0.1:1", "--blobs", "s3://blobs?endpoint=http://127.0.0.1:1", "--data", filepath.Join(dir, "data"),
	}
	without := func(flag string, more ...string) []string {
		out := append([]string{}, more...)
		for i := 0; i < len(whole); i += 2 {
			if whole[i] != flag {
				out = append(out, whole[i:i+2]...)
			}
		}
		return out
	}
	for name, tt := range map[string]struct {
		roles, flags []string
		code         int
		says         string
	}{
		"no role":        {nil, whole, ExitUsage, "missing: ROLE"},
		"no such role":   {[]string{"root"}, whole, ExitUsage, "roles are gateway, router"},
		"twice":          {[]string{"task", "task"}, whole, ExitUsage, "named twice"},
		"no bus":         {[]string{"task"}, without("--bus"), ExitUsage, "--bus"},
		"no bus URL":     {[]string{"task"}, without("--bus", "--bus", "127.0.0.1:4222"), ExitUsage, "nats://host:port"},
		"no seeds":       {[]string{"task"}, without("--bus-keys"), ExitUsage, "writ admin cell accounts"},
		"no name":        {[]string{"task"}, without("--instance"), ExitUsage, "instance"},
		"no keys":        {[]string{"task"}, without("--keys"), ExitUsage, "writ admin cell create"},
		"own documents":  {[]string{"plans"}, whole, ExitUsage, "executor:plans"},
		"no documents":   {[]string{"router"}, without("--documents"), ExitUsage, "--documents URL"},
		"no blobs":       {[]string{"router"}, without("--blobs"), ExitUsage, "--blobs s3://"},
		"own server":     {[]string{"router"}, append(without(""), "--nats", "127.0.0.1:0"), ExitUsage, "--bus"},
		"no public keys": {[]string{"task"}, whole, ExitNo, "writ admin cell create"},
	} {
		got := writ(t, append(append([]string{"admin", "cell", "serve"}, tt.roles...), tt.flags...)...)
		if got.code != tt.code || !strings.Contains(got.err, tt.says) {
			t.Errorf("%s: exit %d: %s", name, got.code, got.err)
		}
	}
	if got := writ(t, "up", "--bus", "nats://127.0.0.1:1", "--data", filepath.Join(dir, "up")); got.code != ExitUsage || !strings.Contains(got.err, "writ admin cell serve") {
		t.Errorf("writ up on a cluster: exit %d: %s", got.code, got.err)
	}
}
