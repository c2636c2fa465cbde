package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/telemetry"
)

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// TestHandler: each figure is that of the moment of the request, with its type.
func TestHandler(t *testing.T) {
	held := 1
	asks := telemetry.NewAsks()
	asks.Count("shop", 150*time.Millisecond, 147*time.Millisecond, "")
	asks.Count("shop", 60*time.Second, 0, "timeout")
	asks.Figure("cap", "over")
	h := telemetry.Handler(telemetry.NewFigures([]telemetry.Metric{
		{Name: "writ_held", Help: "What is held.", Values: func() map[string]float64 { return telemetry.Single(held) }},
		{Name: "writ_refused_total", Help: "Refusals.", Label: "code", Counter: true, Values: func() map[string]float64 {
			return map[string]float64{"RATE_LIMITED": 2, "INTERNAL": 0}
		}},
		{Name: "writ_nothing", Help: "Nothing yet.", Label: "code", Values: func() map[string]float64 { return nil }},
	}, asks, telemetry.NewIntents()))
	held = 3
	code, text := get(t, h, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, line := range []string{
		"# HELP writ_held What is held.", "# TYPE writ_held gauge", "writ_held 3",
		"# TYPE writ_refused_total counter", `writ_refused_total{code="RATE_LIMITED"} 2`, `writ_refused_total{code="INTERNAL"} 0`,
		"# TYPE agent_dispatch_duration_ms histogram", `agent_dispatch_duration_ms_bucket{agent_id="shop",le="200"} 1`, `agent_dispatch_duration_ms_count{agent_id="shop"} 2`,
		`agent_dispatch_overhead_seconds_bucket{agent_id="shop",le="0.002"} 0`, `agent_dispatch_overhead_seconds_bucket{agent_id="shop",le="0.004"} 1`, `agent_dispatch_overhead_seconds_count{agent_id="shop"} 1`,
		`agent_dispatch_errors_total{agent_id="shop",error_type="timeout"} 1`,
		`agent_turn_figures_total{figure="cap",value="over"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if !strings.Contains(text, "\ngo_goroutines ") || strings.Contains(text, "writ_nothing") {
		t.Error(text)
	}
	if code, _ := get(t, h, "/"); code != http.StatusNotFound {
		t.Errorf("/ is %d", code)
	}
}
