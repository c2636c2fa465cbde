package monitor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/egresstest"
	"aob.dev/writ/monitor"
)

// TestReceiverFaults: the error of a receiver that fails has the setting that helps and the command
// that tries it, and not its URL, which may be a secret.
func TestReceiverFaults(t *testing.T) {
	now := func() time.Time { return noon }
	for name, b := range egresstest.Servers(t) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		for _, r := range []monitor.Receiver{monitor.Webhook{URL: b.URL + "/hidden", Secret: "s", Now: now}, monitor.Slack{URL: b.URL + "/hidden"}} {
			t.Run(name+"/"+r.Name(), func(t *testing.T) {
				err := r.Send(ctx, monitor.Incident{Rule: "DiskLow", Since: noon})
				b.Check(t, err, "alerts are kept for it")
				if err != nil && (strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "writ admin alerts test")) {
					t.Error(err)
				}
			})
		}
	}
}
