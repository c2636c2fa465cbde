package bus

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
)

// Error codes of servers of a cluster that have not all found each other yet, or are electing a
// leader, and of a server without a cluster.
const (
	codeNoPeers     jetstream.ErrorCode = 10005
	codeUnavailable jetstream.ErrorCode = 10008
	codeNoCluster   jetstream.ErrorCode = 10074
)

// askTime bounds the wait for an answer of the servers, and askRetry is the pause before the next
// request. After tellAfter without an answer, the log reports it. Servers that refuse for placeTime
// to place the replicas are too few: those of a cluster that starts have all joined by then.
const (
	askTime   = 2 * time.Second
	askRetry  = 50 * time.Millisecond
	tellAfter = 10 * time.Second
	placeTime = 3 * time.Minute
)

// RetryUntilReady requests something stored on the servers, called what in messages, until their
// cluster is ready. Servers that have just started, or that elect a leader, drop or refuse
// requests; it retries after these errors too. It ends with ctx, and returns the servers' refusal if
// they have found no place for the replicas for placeTime.
func RetryUntilReady[A any](ctx context.Context, what string, ask func(context.Context) (A, error), after ...error) (a A, err error) {
	var refused time.Time // since when the replicas have no place
	var answer error      // the last one of the servers
	for tell := time.Now().Add(tellAfter); ; {
		late, cancel := context.WithTimeout(ctx, askTime)
		a, err = ask(late)
		cancel()
		if !notReady(err) && !slices.ContainsFunc(after, func(known error) bool { return errors.Is(err, known) }) {
			return a, err
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			answer = err
		}
		switch now := time.Now(); {
		case !isAPI(err, codeNoPeers):
			refused = time.Time{}
		case refused.IsZero():
			refused = now
		case now.Sub(refused) >= placeTime:
			return a, err
		}
		if !tell.IsZero() && time.Now().After(tell) {
			slog.WarnContext(ctx, "NATS servers are not ready; writ goes on asking", slog.String("error", Fault(what, err).Error()))
			tell = time.Time{}
		}
		if clock.Sleep(ctx, askRetry) != nil {
			return a, cmp.Or(answer, err)
		}
	}
}

// notReady reports whether the error is one that healthy servers do not return.
func notReady(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || isAPI(err, codeNoPeers) || isAPI(err, codeUnavailable)
}

// isAPI reports whether servers refused a request with a code.
func isAPI(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}
