package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	stream "github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

// limit lets the stream of a journal grow by so many bytes at most; -1: as it likes.
func limit(ctx context.Context, js stream.JetStream, more int64) error {
	s, err := js.Stream(ctx, jetstream.Stream)
	if err != nil {
		return err
	}
	config := s.CachedInfo().Config
	if config.MaxBytes = -1; more >= 0 {
		config.MaxBytes = int64(s.CachedInfo().State.Bytes) + more
	}
	_, err = js.UpdateStream(ctx, config)
	return err
}

func openOn(ctx context.Context, t *testing.T, js stream.JetStream, replicas int) *jetstream.Journal {
	t.Helper()
	if err := jetstream.Create(ctx, js, replicas); err != nil {
		t.Fatalf("make the stream: %v", err)
	}
	j, err := jetstream.Open(ctx, js, jetstream.Options{Instance: "r1", OnFatal: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatalf("open the journal: %v", err)
	}
	t.Cleanup(func() { _ = j.Close() })
	if err := j.Lead(ctx, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	return j
}

// TestFull: outcomes and commits that a full stream refuses are written when there is room, once.
func TestFull(t *testing.T) {
	c := natstest.Start(t, 3)
	js := c.Connect(t, c.Account())
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	storagetest.Full(t, openOn(ctx, t, js, 3), func(is bool) {
		if err := limit(ctx, js, map[bool]int64{true: 1000, false: -1}[is]); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFullAccount: an account at its limit refuses as a full stream does.
func TestFullAccount(t *testing.T) {
	c := natstest.StartWith(t, 1, "accounts { A0 { jetstream: {max_file: 100KB}, users: [{user: a0, password: p}] } }\n")
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	j := openOn(ctx, t, c.Connect(t, "a0"), 1)
	for n := 0; ; n++ {
		before := j.Next()
		r, err := j.Commit(ctx, storagetest.CrashCommit(fmt.Sprint(n), 4))
		if err == nil {
			continue
		}
		if !errors.Is(err, storage.ErrFull) || r.Verdict != storage.Unknown || j.Next() != before {
			t.Fatalf("commit %d = %+v, %v", n, r, err)
		}
		return
	}
}

// deaf loses answers, or requests, and then leaves no room. At the third try there is
// room again.
type deaf struct {
	stream.JetStream
	t     *testing.T
	sends bool // requests arrive
	tries int  // -1: nothing is lost
}

func (d *deaf) PublishMsg(ctx context.Context, m *nats.Msg, o ...stream.PublishOpt) (*stream.PubAck, error) {
	if d.tries < 0 {
		return d.JetStream.PublishMsg(ctx, m, o...)
	}
	switch d.tries++; d.tries {
	case 1:
		if d.sends {
			if _, err := d.JetStream.PublishMsg(ctx, m, o...); err != nil {
				d.t.Errorf("publish: %v", err)
			}
		}
		if err := limit(context.WithoutCancel(ctx), d.JetStream, 0); err != nil {
			d.t.Error(err)
		}
		return nil, context.DeadlineExceeded
	case 3:
		if err := limit(context.WithoutCancel(ctx), d.JetStream, -1); err != nil {
			d.t.Error(err)
		}
	}
	return d.JetStream.PublishMsg(ctx, m, o...)
}

// TestFullAfterALostAnswer: a stream that is full when a group is sent again has not thereby
// refused it: the first one may be stored, or may still arrive. It is written once.
func TestFullAfterALostAnswer(t *testing.T) {
	c := natstest.Start(t, 1)
	d := &deaf{JetStream: c.Connect(t, c.Account()), t: t, tries: -1}
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	j := openOn(ctx, t, d, 1)
	for n := range 10 {
		id := fmt.Sprint(n)
		for _, write := range []func() error{
			func() error {
				r, err := j.Commit(ctx, storagetest.CrashCommit(id, 1))
				if r.Verdict != storage.Won {
					t.Errorf("commit = %+v", r)
				}
				return err
			},
			func() error {
				_, err := j.Finish(ctx, j.Next()-1, 1, storagetest.CrashRecord(storage.KindOutcome, id, 0, 1), nil)
				return err
			},
		} {
			before := j.Next()
			d.tries, d.sends = 0, n%2 == 0
			if err := write(); err != nil {
				t.Fatalf("write with a lost answer: %v", err)
			}
			d.tries = -1
			if err := limit(ctx, d.JetStream, -1); err != nil {
				t.Fatal(err)
			}
			if err := j.Fresh(ctx); err != nil {
				t.Fatal(err)
			}
			if j.Next() != before+1 {
				t.Fatalf("%d records were written", j.Next()-before)
			}
		}
	}
	if open, err := j.OpenIntents(ctx); err != nil || len(open) != 0 {
		t.Errorf("%+v are open, %v", open, err)
	}
}
