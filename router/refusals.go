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

// refusalLines is how many refusals without a record are lines of the log, a second and
// of each code. The counter record has how many there were in all.
const refusalLines = 10

// refusals logs orders that were turned down without a record.
type refusals struct {
	to      *slog.Logger
	limit   *ratelimit.Limiter
	leftOut atomic.Int64 // since the last line
}

func newRefusals(to *slog.Logger, now func() time.Time) *refusals {
	return &refusals{to: to, limit: ratelimit.New(refusalLines, time.Second, ratelimit.Of(64), now)}
}

// log says who was turned down, as the order has it: nobody vouches for any of it. raw is
// empty where no single order is to blame.
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
	l.to.InfoContext(ctx, "an order was turned down, and has no record", slog.String("code", string(code)), slog.String("type", clip(b.Intent.Type)),
		slog.Group("claimed", slog.String("tenant", clip(b.Actor.Tenant)), slog.String("user_id", clip(b.Actor.UserID))),
		slog.String("trace_id", clip(b.TraceID)), slog.Int64("left_out", l.leftOut.Swap(0)))
}

// claimed is what an order says of itself, as far as it can be read.
func claimed(raw []byte) (b intents.Body) {
	if u, err := intents.Parse(raw); err == nil {
		b = u.Body()
		b.TraceID = cmp.Or(b.TraceID, u.ID()[len("sha256:"):][:32]) // as Envelope.TraceID
		return b
	}
	_ = json.Unmarshal(raw, &b) // of one that is malformed, what can be read
	return b
}
