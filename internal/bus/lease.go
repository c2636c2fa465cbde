package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bucket is the key-value bucket in which processes of a cell find each other.
const Bucket = "writ"

// LeaseRecorder is the lease of the recorder that writes.
const LeaseRecorder = "recorder"

// A lease is renewed so often, and is free where it was not for so long on the clock of
// whoever wants it. Clocks of other machines have no say.
const (
	leaseRenew = 2 * time.Second
	leaseStood = 15 * time.Second
)

// ErrLeaseLost says that another process has a lease, or may soon.
var ErrLeaseLost = errors.New("bus: the lease is lost")

// EnsureCell makes the bucket where it is missing; c must be a router's.
func EnsureCell(ctx context.Context, c Conn) error {
	js, err := JetStream(c)
	if err != nil {
		return err
	}
	_, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: Bucket, Description: "the processes of a cell", Replicas: Replicas(c)})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("bus: create bucket %s: %w", Bucket, err)
	}
	return nil
}

// JetStream is the API of a connection of CORE, as far as its role may use it.
func JetStream(c Conn) (jetstream.JetStream, error) {
	of, ok := c.(*conn)
	if !ok {
		return nil, errors.New("bus: jetstream: not a connection of this package")
	}
	js, err := jetstream.New(of.nc)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	return js, nil
}

// maxReplicas of what a cluster keeps: one server may be lost, and nothing is.
const maxReplicas = 3

// Replicas of what is kept on the servers of a connection: as many as there are, up to
// maxReplicas.
func Replicas(c Conn) int {
	of, ok := c.(*conn)
	if !ok {
		return 1
	}
	return min(maxReplicas, max(of.servers, len(of.nc.DiscoveredServers())))
}

// Lease is what at most one process has, as long as it renews it. Another one takes it once
// its revision has stood still. For a moment two may believe that they have it, so what they
// do under it must bear that.
type Lease struct {
	kv           jetstream.KeyValue
	name, holder string
	renew, stood time.Duration
	revision     uint64 // that this process wrote; 0: it does not have it
}

// NewLease takes nothing yet. holder is for people.
func NewLease(ctx context.Context, c Conn, name, holder string) (*Lease, error) {
	kv, err := bucketOf(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Lease{kv: kv, name: name, holder: holder, renew: leaseRenew, stood: leaseStood}, nil
}

// Take waits until this process has the lease. The error is that of ctx.
func (l *Lease) Take(ctx context.Context) error {
	var seen uint64 // revision of the holder
	var since time.Time
	for {
		at, holder, err := l.look(ctx)
		switch {
		case err != nil: // it cannot be asked now
		case holder == "" || at == seen && time.Since(since) >= l.stood: // time.Since: the monotonic clock
			if l.write(ctx, at) == nil {
				return nil
			}
		case at != seen:
			seen, since = at, time.Now()
		}
		if !l.pause(ctx) {
			return ctx.Err()
		}
	}
}

// pause until the next renewal; false: ctx has ended.
func (l *Lease) pause(ctx context.Context) bool {
	t := time.NewTimer(l.renew)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// look says at which revision somebody holds the lease, and who; 0: nobody ever did.
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

// write the lease where it is at a revision still.
func (l *Lease) write(ctx context.Context, at uint64) error {
	ctx, cancel := context.WithTimeout(ctx, l.renew)
	defer cancel()
	revision, err := l.kv.Update(ctx, l.name, []byte(l.holder), at)
	if err == nil {
		l.revision = revision
	}
	return err
}

// Keep renews the lease until ctx ends, and gives it back then. ErrLeaseLost: another
// process has it, or could have it soon.
func (l *Lease) Keep(ctx context.Context) error {
	renewed := time.Now()
	for l.pause(ctx) {
		began := time.Now()
		if l.write(ctx, l.revision) == nil {
			renewed = began
			continue
		}
		// A write without an answer may have been done: then the revision is another one.
		at, holder, err := l.look(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil && holder != l.holder, time.Since(renewed) > l.stood/2:
			return ErrLeaseLost
		case err == nil:
			l.revision = at
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.renew)
	defer cancel()
	_, _ = l.kv.Update(last, l.name, nil, l.revision) // else it stands still until it is free
	return nil
}
