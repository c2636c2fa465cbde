//go:build integration

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/telemetry"
)

// TestIntegrationMetrics: promtool reads what /metrics tells after a turn in which one asked agent
// answers and one fails. It complains of nothing but a name that the requirements give.
func TestIntegrationMetrics(t *testing.T) {
	t.Parallel()
	promtool := os.Getenv("WRIT_PROMTOOL")
	if promtool == "" {
		t.Fatal("WRIT_PROMTOOL names no promtool: run .ci/integration")
	}
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{
		"desk":   desk("orders", "tickets"),
		"orders": func(context.Context, model.Request) *model.Response { return &model.Response{Text: "Orders are well."} },
	}}
	_, skills := serveCRM(t)
	s := start(t, setup{Skills: []string{skills}, Model: m, Agents: deskFiles(t, "")})
	if got := s.askAgent(s.as("ana"), "desk", "How are things?"); got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	w := httptest.NewRecorder()
	telemetry.Handler(s.node.Figures()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, name := range []string{"agent_dispatch_duration_ms", "agent_dispatch_errors_total", "writ_stage_seconds", "writ_monitor", "writ_scripts"} {
		if !strings.Contains(w.Body.String(), "# TYPE "+name+" ") {
			t.Errorf("no metric %s: the test finds too little", name)
		}
	}
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = w.Body
	out, _ := cmd.CombinedOutput() // it fails, by the complaint that is wanted
	want := []string{"agent_dispatch_duration_ms metric names should not contain abbreviated units"}
	if got := slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(out)), "\n")); !slices.Equal(got, want) {
		t.Errorf("promtool: %s", gocmp.Diff(want, got))
	}
}
