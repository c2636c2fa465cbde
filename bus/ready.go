package bus

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
)

// Error codes of servers of a cluster that have not all found each other yet, or are electing a
// leader.
const (
	codeNoPeers     jetstream.ErrorCode = 10005
	codeUnavailable jetstream.ErrorCode = 10008
)

// askTime bounds the wait for an answer of the servers, and askRetry is the pause before the next
// request. After tellAfter without an answer, the log reports it.
const (
	askTime   = 2 * time.Second
	askRetry  = 50 * time.Millisecond
	tellAfter = 10 * time.Second
)

// RetryUntilReady requests something stored on the servers, called what in messages, until their
// cluster is ready. Servers that have just started, or that elect a leader, drop or refuse
// requests; it retries after these errors too. It ends with ctx.
func RetryUntilReady[A any](ctx context.Context, what string, ask func(context.Context) (A, error), after ...error) (a A, err error) {
	for tell := time.Now().Add(tellAfter); ; {
		late, cancel := context.WithTimeout(ctx, askTime)
		a, err = ask(late)
		cancel()
		if !notReady(err) && !slices.ContainsFunc(after, func(known error) bool { return errors.Is(err, known) }) {
			return a, err
		}
		if !tell.IsZero() && time.Now().After(tell) {
			slog.WarnContext(ctx, "NATS servers do not answer; writ goes on asking", slog.String("error", Fault(what, err).Error()))
			tell = time.Time{}
		}
		if clock.Sleep(ctx, askRetry) != nil {
			return a, err
		}
	}
}

// notReady reports whether the error is one that healthy servers do not return.
func notReady(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &api) && (api.ErrorCode == codeNoPeers || api.ErrorCode == codeUnavailable)
}
