package router

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
)

// refusalLines bounds the log lines for refusals without a record, per second and code. The counter
// record has the total.
const refusalLines = 10

// refusals logs intents that were refused without a record.
type refusals struct {
	to      *slog.Logger
	limit   *ratelimit.Limiter
	leftOut atomic.Int64 // since the last line
}

func newRefusals(to *slog.Logger, now func() time.Time) *refusals {
	return &refusals{to: to, limit: ratelimit.New(refusalLines, time.Second, ratelimit.Unshared(64), now)}
}

// log names the refused sender as the intent has it; none of it is verified. raw is empty if no
// single intent is to blame.
func (l *refusals) log(ctx context.Context, raw []byte, err error) {
	code := intents.CodeOf(err)
	if code == intents.Internal {
		return // a failure of the router, which has a line of its own
	}
	if _, ok := l.limit.Allow(ratelimit.Caller{Name: string(code)}); !ok {
		l.leftOut.Add(1)
		return
	}
	b := claimed(raw)
	l.to.InfoContext(ctx, "an intent was turned down, and has no record", slog.String("code", string(code)), slog.String("type", clip(b.Intent.Type)),
		slog.Group("claimed", slog.String("tenant", clip(b.Actor.Tenant)), slog.String("user_id", clip(b.Actor.UserID))),
		slog.String("trace_id", clip(b.TraceID)), slog.Int64("left_out", l.leftOut.Swap(0)))
}

// claimed returns an intent's unverified body, as far as it can be read.
func claimed(raw []byte) (b intents.Body) {
	if u, err := intents.Parse(raw); err == nil {
		b = u.Body()
		b.TraceID = cmp.Or(b.TraceID, u.ID()[len("sha256:"):][:32]) // as Envelope.TraceID
		return b
	}
	_ = json.Unmarshal(raw, &b) // of one that is malformed, what can be read
	return b
}
