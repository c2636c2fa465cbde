package bus

import (
	"context"
	"time"
)

// Hurry shortens the times of a lease.
func (l *Lease) Hurry(renew, stood time.Duration) {
	l.renew, l.stop, l.expiry = renew, stood/2, stood
}

// Bound sets the size of the stream that a publisher creates.
func (p *Publisher) Bound(bytes int) { p.bytes = bytes }

// ShareFramesBelow checks the stream of frames once, as a router's ShareFrames does.
func ShareFramesBelow(ctx context.Context, router Conn, limit uint64) error {
	return router.(*conn).shareFrames(ctx, limit)
}
