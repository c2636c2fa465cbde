package clock

import (
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	for given, want := range map[string]string{
		"0s": "0 ms", "1ms": "1 ms", "999.9ms": "1 s", "1s": "1 s", "1.53s": "1.5 s", "59.4s": "59 s", "59.6s": "1 min", "1m0s": "1 min",
		"1m5.123s": "1 min 5 s", "59m59.9s": "1 h", "1h0m0s": "1 h", "1h1m0s": "1 h 1 min", "1h0m31s": "1 h 1 min", "23h59m40s": "1 d",
		"24h": "1 d", "76h10m": "3 d 4 h", "720h": "30 d", "-90s": "-1 min 30 s",
	} {
		d, err := time.ParseDuration(given)
		if got := Words(d); err != nil || got != want {
			t.Errorf("%s: %q, not %q", given, got, want)
		}
	}
}
