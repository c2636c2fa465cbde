package reads

import (
	"testing"
	"time"

	"aob.dev/writ/monitor"
)

// TestShownFigures: however often a tenant's page is opened, its figures are read once a minute.
func TestShownFigures(t *testing.T) {
	var s figures
	now, reads := time.Unix(1_790_000_000, 0), 0
	for range 10 {
		for _, tenant := range []string{"a", "b"} {
			f, err := s.read(tenant, now, func() (monitor.Figures, error) {
				reads++
				return monitor.Figures{Until: now, Plans: int64(reads)}, nil
			})
			if err != nil || f.Plans == 0 {
				t.Fatal(f, err)
			}
		}
		now = now.Add(15 * time.Second)
	}
	if reads != 6 {
		t.Errorf("read %d times", reads)
	}
}
