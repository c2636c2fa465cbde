//go:build integration

package monitor_test

import "testing"

// TestIntegrationMonitorOfAnHour is TestMonitorUnderLoad for an hour of records.
func TestIntegrationMonitorOfAnHour(t *testing.T) {
	if longest := newHouse(t).underLoad(60); longest > longestLog {
		t.Errorf("the write-ahead log had %d MiB", longest>>20)
	}
}
