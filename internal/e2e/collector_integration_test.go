//go:build integration

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestIntegrationCollector is TestTraceOfATurn by way of an OpenTelemetry collector, which takes
// what it is sent and sends it on.
func TestIntegrationCollector(t *testing.T) {
	c := serveCollector(t)
	traceOfATurn(t, c, startCollector(t, c.url))
}

// startCollector starts a collector that sends on to an address before it answers.
func startCollector(t *testing.T, to string) (url string) {
	t.Helper()
	program := os.Getenv("WRIT_OTELCOL")
	if program == "" {
		t.Fatal("WRIT_OTELCOL names no collector: run .ci/integration")
	}
	at, file := freeAddress(t), filepath.Join(t.TempDir(), "collector.yaml")
	config := fmt.Sprintf(`receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_http]}
    metrics: {receivers: [otlp], exporters: [otlp_http]}
`, at, to)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log outputBuffer
	cmd := exec.CommandContext(t.Context(), program, "--config", file)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the collector said:\n%s", log.String())
		}
	})
	late := time.After(patience)
	for !strings.Contains(log.String(), "Everything is ready") {
		select {
		case <-ended:
			t.Fatal("the collector ended before it was ready")
		case <-late:
			t.Fatalf("the collector is not ready in %s", patience)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return "http://" + at
}
