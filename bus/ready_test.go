package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
)

// TestRetryUntilReady: requests to servers of a starting cluster are retried, and refusals are
// not.
func TestRetryUntilReady(t *testing.T) {
	late := fmt.Errorf("nats: %w", context.DeadlineExceeded)
	for name, c := range map[string]struct {
		err    error
		after  []error
		repeat bool
	}{
		"no peers":              {err: &jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement"}, repeat: true},
		"no leader":             {err: &jetstream.APIError{Code: 503, ErrorCode: 10008}, repeat: true},
		"no answer":             {err: late, repeat: true},
		"nobody keeps anything": {err: nats.ErrNoResponders},
		"nobody, which may end": {err: nats.ErrNoResponders, after: []error{nats.ErrNoResponders}, repeat: true},
		"JetStream is off":      {err: jetstream.ErrJetStreamNotEnabled},
		"no such stream":        {err: jetstream.ErrStreamNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				got, err := bus.RetryUntilReady(t.Context(), "stream X", func(context.Context) (int, error) {
					if asked++; asked == 1 {
						return 0, c.err
					}
					return 7, nil
				}, c.after...)
				if again := asked == 2 && got == 7 && err == nil; again != c.repeat || !again && !errors.Is(err, c.err) {
					t.Errorf("asked %d times: %d, %v", asked, got, err)
				}
			})
		})
	}
}

// TestRetryUntilReadyIsLogged: waiting for servers that do not answer is logged once, and the
// wait ends with its context.
func TestRetryUntilReadyIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := bus.RetryUntilReady(ctx, "stream X", func(context.Context) (bool, error) { return false, nats.ErrNoResponders }, nats.ErrNoResponders); !errors.Is(err, nats.ErrNoResponders) {
			t.Error(err)
		}
	})
	if n := strings.Count(log.String(), "NATS servers do not answer"); n != 1 || !strings.Contains(log.String(), "stream X of the NATS servers") || !strings.Contains(log.String(), "JetStream is off") {
		t.Errorf("it is told %d times: %s", n, log.String())
	}
}
