//go:build integration

package monitor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIntegrationPromtool: Prometheus accepts the alerts, and each fires on its series and is
// silent on others. It also accepts the queries of the dashboards.
func TestIntegrationPromtool(t *testing.T) {
	program := os.Getenv("WRIT_PROMTOOL")
	if program == "" {
		t.Fatal("WRIT_PROMTOOL names no promtool: run .ci/integration")
	}
	var asked strings.Builder
	asked.WriteString("groups:\n  - name: dashboards\n    rules:\n")
	for _, b := range boards {
		for i, p := range b.panels {
			fmt.Fprintf(&asked, "      - {record: 'asked:%s:%d', expr: '%s'}\n", b.file, i, p.expr)
		}
	}
	dashboards := filepath.Join(t.TempDir(), "dashboards.yaml")
	if err := os.WriteFile(dashboards, []byte(asked.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml", dashboards}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = filepath.Join("..", "deploy", "prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
