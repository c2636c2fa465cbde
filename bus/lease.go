package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
)

// Bucket is the key-value bucket in which processes of a cell find each other.
const Bucket = "writ"

// The leases of a cell: of the recorder that records, and of the router that decides.
const (
	LeaseRecorder = "recorder"
	LeaseRouter   = "router"
)

// leaseTerms are the times of a lease. Its owner renews it, and stops once it has not for stop. It is
// free once it has had no new revision for expiry, on the clock of the process that wants it. Clocks
// of other machines do not matter.
type leaseTerms struct{ renew, stop, expiry time.Duration }

// termsOf a lease. A takeover costs the users of a router its expiry, and those of a recorder nothing.
func termsOf(name string) leaseTerms {
	if name == LeaseRouter {
		return leaseTerms{renew: time.Second, stop: 2 * time.Second, expiry: 4 * time.Second}
	}
	return leaseTerms{renew: 2 * time.Second, stop: 7500 * time.Millisecond, expiry: 15 * time.Second}
}

// ErrLeaseLost means that another process has the lease, or may have it soon.
var ErrLeaseLost = errors.New("bus: the lease is lost")

// EnsureCell creates the bucket if it is missing, and waits for the servers as long as needed; c
// must be a router's.
func EnsureCell(ctx context.Context, c Conn) error {
	js, err := JetStream(c)
	if err != nil {
		return err
	}
	_, err = RetryUntilReady(ctx, "bucket "+Bucket, func(ctx context.Context) (jetstream.KeyValue, error) {
		return js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: Bucket, Description: "the processes of a cell", Replicas: Replicas(c)})
	})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return Fault("bucket "+Bucket, err)
	}
	return nil
}

// JetStream returns the API of a connection of CORE, limited to the rights of its role.
func JetStream(c Conn) (jetstream.JetStream, error) {
	of, err := ours(c)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(of.nc)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	return js, nil
}

// maxReplicas is the number of replicas in a cluster: one server may be lost without loss of
// data.
const maxReplicas = 3

// Replicas returns the number of replicas for data on the servers of a connection: the number of
// servers, at most maxReplicas.
func Replicas(c Conn) int {
	of, ok := c.(*conn)
	if !ok {
		return 1
	}
	return min(maxReplicas, max(of.servers, len(of.nc.DiscoveredServers())))
}

// Lease is owned by at most one process as long as that process renews it. Another process takes
// it once its revision has not changed for the expiry. A process that was paused may believe that it
// owns it still, until it asks Held. One goroutine at a time uses it, but for Held.
type Lease struct {
	kv           jetstream.KeyValue
	name, holder string
	leaseTerms
	revision uint64                    // that this process wrote; 0: not the owner
	renewed  atomic.Pointer[time.Time] // when the last write that succeeded began
}

// NewLease creates a lease without taking it. holder is for people.
func NewLease(ctx context.Context, c Conn, name, holder string) (*Lease, error) {
	kv, err := bucketOf(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Lease{kv: kv, name: name, holder: holder, leaseTerms: termsOf(name)}, nil
}

// Take waits until this process owns the lease. The error is that of ctx.
func (l *Lease) Take(ctx context.Context) error {
	var seen uint64 // revision of the current owner
	var since time.Time
	for {
		at, holder, err := l.look(ctx)
		switch {
		case err != nil: // the bucket cannot be read now
		case holder == "" || at == seen && time.Since(since) >= l.expiry: // time.Since: the monotonic clock
			if l.write(ctx, at) == nil {
				return nil
			}
		case at != seen:
			seen, since = at, time.Now()
		}
		if err := clock.Sleep(ctx, l.renew); err != nil {
			return err
		}
	}
}

// Held reports whether this process has taken the lease, and renewed it lately enough that nobody
// else can have it. A machine that was suspended, and a clock that is set forward, end that. Safe for
// concurrent use.
func (l *Lease) Held() bool {
	at, now := l.renewed.Load(), time.Now()
	return at != nil && now.Sub(*at) < l.stop && now.Round(0).Sub(at.Round(0)) < l.stop // the monotonic and the wall clock
}

// look returns the revision of the lease and its holder; 0: nobody has ever held it.
func (l *Lease) look(ctx context.Context) (revision uint64, holder string, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.renew)
	defer cancel()
	e, err := l.kv.Get(ctx, l.name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	return e.Revision(), string(e.Value()), nil
}

// write writes the lease if it is still at the given revision.
func (l *Lease) write(ctx context.Context, at uint64) error {
	ctx, cancel := context.WithTimeout(ctx, l.renew)
	defer cancel()
	began := time.Now()
	revision, err := l.kv.Update(ctx, l.name, []byte(l.holder), at)
	if err == nil {
		l.revision = revision
		l.renewed.Store(&began)
	}
	return err
}

// Keep renews the lease until ctx ends, and then releases it. ErrLeaseLost: another process has
// it, or may have it soon.
func (l *Lease) Keep(ctx context.Context) error {
	for clock.Sleep(ctx, l.renew) == nil {
		if !l.Held() { // it was paused
			return ErrLeaseLost
		}
		if l.write(ctx, l.revision) == nil {
			continue
		}
		// A write without an answer may have been applied; then the revision has changed.
		at, holder, err := l.look(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil && holder != l.holder, !l.Held():
			return ErrLeaseLost
		case err == nil:
			l.revision = at
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.renew)
	defer cancel()
	_, _ = l.kv.Update(last, l.name, nil, l.revision) // otherwise it expires
	return nil
}
