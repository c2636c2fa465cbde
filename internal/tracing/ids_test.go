package tracing

import "testing"

// A trace_id that is no id of OpenTelemetry names the same trace each time, and another one
// than its neighbour's.
func TestIDOf(t *testing.T) {
	const hex = "0af7651916cd43dd8448eb211c80319c"
	if got := idOf(hex).String(); got != hex {
		t.Errorf("%s is %s", hex, got)
	}
	for _, text := range []string{"abcd-1234", "7f3e…", "0AF7651916CD43DD8448EB211C80319C", "00000000000000000000000000000000", hex + "0"} {
		if id := idOf(text); !id.IsValid() || id != idOf(text) || id == idOf(text+" ") {
			t.Errorf("%q is %s", text, id)
		}
	}
	if idOf("").IsValid() {
		t.Error("no trace_id names a trace")
	}
}
