//go:build integration

package e2e

import (
	"os"
	"testing"
	"time"
)

// TestIntegrationReadsLeaveNoRecord is TestReadsLeaveNoRecord for as long as a campaign lasts.
func TestIntegrationReadsLeaveNoRecord(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv(campaignTime))
	if err != nil {
		lasts = 0 // once
	}
	looksFor(t, lasts)
}
