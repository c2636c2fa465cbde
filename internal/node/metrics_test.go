package node

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestMetrics: what the parts count is told on a listener of its own, and on no other.
func TestMetrics(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Metrics = "127.0.0.1:0"
	n := open(t, cfg)
	run(t, n)
	if err := tenantPut(t.Context(), n, "acme"); err != nil {
		t.Fatal(err)
	}
	get := func(url string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(raw)
	}
	code, text := get("http://" + n.metered.Addr().String() + "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, m := range n.metrics() {
		if m.Label != "condition" && m.Label != "code" && m.Label != "event" && m.Label != "agent_id" && !strings.Contains(text, "# TYPE "+m.Name+" ") {
			t.Errorf("no %s", m.Name)
		}
	}
	for _, line := range []string{
		`writ_held_plans\{state="open"\} 0`, `writ_orders_accepted_total [1-9]`, `writ_journal_records [1-9]`, `ps6_envelope_version_mismatch_total 0`,
		`ps6_envelope_principal_mismatch_total\{consumer="consumer-agent"\} 0`, `writ_orders_decided_total\{code="OK",type="[a-z.]+"\} [1-9]`, `writ_stage_seconds_count\{stage="policy"\} [1-9]`,
		`writ_stage_seconds_count\{stage="commit"\} [1-9]`, `writ_journal_commit_orders_count [1-9]`, `writ_journal_commit_seconds_count [1-9]`, `writ_holds\{half="second"\} 0`, `writ_orders_recovered 0`,
		`writ_scripts\{state="waiting"\} 0`, `go_goroutines [1-9]`, `process_resident_memory_bytes [1-9]`,
	} {
		if !regexp.MustCompile("(?m)^" + line).MatchString(text) {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	if code, _ := get("http://" + n.Addr().String() + "/metrics"); code == http.StatusOK {
		t.Error("metrics are told to everybody")
	}
}
