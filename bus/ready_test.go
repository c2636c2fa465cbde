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
	if n := strings.Count(log.String(), "NATS servers are not ready"); n != 1 || !strings.Contains(log.String(), "stream X of the NATS servers") || !strings.Contains(log.String(), "JetStream is off") {
		t.Errorf("it is told %d times: %s", n, log.String())
	}
}

// TestTooFewServersEndTheWait: a cluster that finds no place for the replicas is waited for while it
// may be starting, and then the error says what is missing. One that elects a leader, or does not
// answer, is waited for as long as needed.
func TestTooFewServersEndTheWait(t *testing.T) {
	noPeers := &jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement"}
	noLeader := &jetstream.APIError{Code: 503, ErrorCode: 10008}
	for name, c := range map[string]struct {
		answer func(since time.Duration) error
		ends   time.Duration // 0: with its context
	}{
		"too few":        {func(time.Duration) error { return noPeers }, 3 * time.Minute},
		"no leader":      {func(time.Duration) error { return noLeader }, 0},
		"no answer":      {func(time.Duration) error { return context.DeadlineExceeded }, 0},
		"they join late": {func(since time.Duration) error { return map[bool]error{true: noPeers}[since < 2*time.Minute] }, 2 * time.Minute},
		"a leader is chosen": {func(since time.Duration) error {
			return map[bool]error{true: noLeader, false: noPeers}[since < 10*time.Minute]
		}, 13 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				_, err := bus.RetryUntilReady(ctx, "stream X", func(context.Context) (bool, error) { return true, c.answer(time.Since(began)) })
				took := time.Since(began).Round(time.Second)
				switch last := c.answer(took); {
				case c.ends == 0 && took != time.Hour, c.ends != 0 && took != c.ends, !errors.Is(err, last):
					t.Errorf("it ended after %s: %v", took, err)
				case errors.Is(err, noPeers):
					if text := bus.Fault("stream X", err).Error(); !strings.Contains(text, "fewer servers than replicas") || !strings.Contains(text, "correct bus (--bus)") {
						t.Error(text)
					}
				}
			})
		})
	}
}
