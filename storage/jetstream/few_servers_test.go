package jetstream

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/testing/natstest"
)

// TestTooFewServers: servers that are fewer than the replicas refuse the stream, alone or in a
// cluster, and the error says so: with this code bus.RetryUntilReady gives up.
func TestTooFewServers(t *testing.T) {
	for _, n := range []int{1, 2} {
		c := natstest.Start(t, n)
		js := c.Connect(t, c.Account())
		ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
		t.Cleanup(cancel)
		// As Create asks, without its wait for servers that may join.
		for {
			try, end := context.WithTimeout(ctx, 2*time.Second)
			_, err := create(try, js, jetstream.StreamConfig{Name: Stream, Subjects: []string{subjectAll}}, 3)
			end()
			if err != nil && strings.Contains(failed(err).Error(), "fewer servers than replicas") {
				break
			}
			if err == nil || ctx.Err() != nil {
				t.Fatalf("%d servers: %v", n, err)
			}
		}
	}
}
