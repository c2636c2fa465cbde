package policies

import (
	"context"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/egresstest"
)

// TestBundleServerFaults: the error of a failing bundle server names the setting that helps, and
// does not contain its token.
func TestBundleServerFaults(t *testing.T) {
	for name, b := range egresstest.Servers(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := Place{At: b.URL + "/bundle.tar.gz", Token: "confidential"}.get(ctx, fetchResult{})
			b.Check(t, err, "the policies that are in force stay in force")
			if err != nil && strings.Contains(err.Error(), "confidential") {
				t.Error(err)
			}
		})
	}
}
