//go:build integration

package opensearch_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// TestIntegrationOutage: a server that is paused, and then killed, makes writes
// and reads fail as unavailable within their time; when it is back the same calls
// go through, and each document is there once. It runs alone on its server, as the
// others wait for parallel ones only.
func TestIntegrationOutage(t *testing.T) {
	c := config("outage-")
	c.Timeout = time.Second
	d, err := opensearch.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := open(t, "outage-").Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, outage := range map[string]struct{ begin, end func() error }{
		"paused": {server.Pause, server.Resume},
		"killed": {server.Kill, func() error { return server.Run(t.Context()) }},
	} {
		t.Run(name, func(t *testing.T) {
			var written atomic.Int64
			stop := make(chan struct{})
			failed := make(chan error, 1)
			ended := make(chan error, 1)
			go func() { ended <- load(t.Context(), d, name, &written, failed, stop) }()
			for written.Load() < 5 {
				if t.Context().Err() != nil {
					t.Fatal("nothing is written")
				}
				time.Sleep(time.Millisecond) //nolint:forbidigo // a counter of another goroutine
			}
			if err := outage.begin(); err != nil {
				t.Fatal(err)
			}
			err := <-failed
			if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("write: %v", err)
			}
			if _, err := d.Search(t.Context(), "acme", storage.IndexMemory, storage.Query{}); !errors.Is(err, storage.ErrUnavailable) {
				t.Fatalf("search: %v", err)
			}
			if err := outage.end(); err != nil {
				t.Fatal(err)
			}
			n := written.Load()
			for written.Load() < n+5 {
				time.Sleep(time.Millisecond) //nolint:forbidigo // likewise
			}
			close(stop)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			v := visible{d}
			var buckets []storage.Bucket
			count := func() error {
				if err := v.Refresh(t.Context()); err != nil {
					return err
				}
				buckets, err = d.Aggregate(t.Context(), "acme", storage.IndexMemory, storage.Query{Ranges: map[string]storage.Range{
					"key": {GTE: "k:" + name, LT: "k:" + name + "~"},
				}}, storage.Aggregation{})
				return err
			}
			err = count()
			for errors.Is(err, storage.ErrUnavailable) { // a server that has just started may be slow
				err = count()
			}
			if err != nil || len(buckets) != 1 || buckets[0].Count != written.Load() {
				t.Fatalf("%v, %v: %d were written", buckets, err, written.Load())
			}
		})
	}
}

// load creates documents one after the other, each until the store reports that it
// is stored. The first failure is returned.
func load(ctx context.Context, d *opensearch.Documents, name string, written *atomic.Int64, failed chan<- error, stop <-chan struct{}) error {
	for n := 0; ; n++ {
		for {
			doc := memory(fmt.Sprintf("%s%d", name, n), int64(n))
			var err error
			if n%2 == 0 {
				_, err = d.Create(ctx, "acme", storage.IndexMemory, doc)
			} else {
				err = d.Put(ctx, "acme", storage.IndexMemory, doc)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, storage.ErrUnavailable) {
				return err
			}
			select {
			case failed <- err:
			default:
			}
		}
		written.Add(1)
		select {
		case <-stop:
			return nil
		default:
		}
	}
}
