package skills_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"aob.dev/writ/intents"
)

// TestSlowListing: a listing that takes longer than a caller waits goes on, serves all who wait
// for one, and is used when it has come.
func TestSlowListing(t *testing.T) {
	var lists atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	honest := serverOf(tool{name: "x", handle: answer("", "ok")})
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(raw))
		var q struct{ Method string }
		if json.Unmarshal(raw, &q) == nil && q.Method == "tools/list" {
			lists.Add(1)
			once.Do(func() { close(begun) })
			<-release
		}
		honest.ServeHTTP(w, r)
	}))
	b := open(t, map[string]*site{"s": s})
	var callers sync.WaitGroup
	ctx, giveUp := context.WithCancel(t.Context())
	for range 20 {
		callers.Go(func() {
			if found, err := b.registry.Skills(ctx, intents.Principal{}); !errors.Is(err, context.Canceled) || len(found) != 0 {
				t.Errorf("found %v, error %v", found, err)
			}
		})
	}
	<-begun
	giveUp()
	callers.Wait()
	close(release)
	b.registry.Await(t.Context())
	found, err := b.registry.Skills(t.Context(), intents.Principal{})
	if err != nil || len(found) != 1 || lists.Load() != 1 {
		t.Errorf("found %v after %d listings, error %v", found, lists.Load(), err)
	}
}
