package blobnats

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
)

// bucket is one object store: a stream with the chunks of each object under a
// subject of its own, and one message that says which object they are.
type bucket struct {
	place  *place
	name   string
	js     jetstream.JetStream
	stream jetstream.Stream
	closed <-chan struct{} // when the connection is closed for good

	active sync.Map // NUIDs that are being written here
}

func openBucket(ctx context.Context, js jetstream.JetStream, closed <-chan struct{}, at place, suffix string, create bool) (*bucket, error) {
	name := at.bucket + suffix
	b := &bucket{place: &at, name: name, js: js, closed: closed}
	want := jetstream.StreamConfig{
		Name: "OBJ_" + name, Description: "writ: blobs", Subjects: []string{b.chunk(">"), b.meta(">")},
		Discard: jetstream.DiscardNew, AllowRollup: true, Replicas: at.replicas, MaxBytes: -1,
		// AllowDirect is off: a lagging replica would miss the latest write.
	}
	var err error
	b.stream, err = js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if !create {
			return b, nil
		}
		b.stream, err = bus.RetryUntilReady(ctx, "stream "+want.Name, func(ctx context.Context) (jetstream.Stream, error) { return js.CreateStream(ctx, want) })
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was faster
			b.stream, err = js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return nil, b.failed(ctx, err)
	}
	if err := fit(b.stream.CachedInfo().Config, want); err != nil {
		return nil, fmt.Errorf("bucket %s of %s cannot keep blobs: %w", name, at.servers, err)
	}
	return b, nil
}

// fit returns what is wrong with an existing bucket.
func fit(is, want jetstream.StreamConfig) error {
	slices.Sort(is.Subjects)
	slices.Sort(want.Subjects)
	switch {
	case !slices.Equal(is.Subjects, want.Subjects):
		return fmt.Errorf("its subjects are %q, not %q", is.Subjects, want.Subjects)
	case is.MaxAge != 0:
		return fmt.Errorf("its content expires after %s: make it without a TTL", is.MaxAge)
	case is.Discard != jetstream.DiscardNew:
		return errors.New("it discards old content when it is full: its stream must discard new messages")
	case is.DenyPurge || is.Sealed || !is.AllowRollup:
		return errors.New("it is sealed, or its stream denies purge or rollup")
	case is.AllowDirect && is.Replicas > 1:
		return errors.New(`a replica that is behind may answer: turn that off ("nats stream edit OBJ_… --no-allow-direct")`)
	case is.Storage != jetstream.FileStorage:
		return errors.New("it is in memory")
	}
	return nil
}

// chunk is the subject of an object's chunks.
func (b *bucket) chunk(nuid string) string { return "$O." + b.name + ".C." + nuid }

// meta is the subject of an object's name.
func (b *bucket) meta(name string) string {
	if name != ">" {
		name = base64.URLEncoding.EncodeToString([]byte(name))
	}
	return "$O." + b.name + ".M." + name
}

// begin names chunks that Sweep leaves alone until end.
func (b *bucket) begin() (nuid string) {
	nuid = rand.Text()
	b.active.Store(nuid, true)
	return nuid
}

func (b *bucket) end(nuid string) { b.active.Delete(nuid) }

func (b *bucket) isActive(nuid string) bool {
	_, active := b.active.Load(nuid)
	return active
}
