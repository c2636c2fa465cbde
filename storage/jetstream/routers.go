package jetstream

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/singleflight"
)

const (
	// subjectAlive begins the subject on which each router announces that it lives.
	subjectAlive = "writ.alive."
	// beat is how often it does.
	beat = 2 * time.Second
	// lostAfter so many beats in silence a router is lost: 16 s.
	lostAfter = 8
)

// Routers announces this router to the other routers of a cell, and tracks which of them are alive.
// It implements router.Peers.
//
// A silence is counted in beats at which this router received its own. So one that was paused,
// or cut off, does not consider the others lost when it comes back.
type Routers struct {
	journal *Journal
	asking  singleflight.Group

	mu     sync.Mutex     // guards what follows
	silent map[string]int // beats without a word, by instance
	echoed bool           // this router received its own beat since its last beat
}

// NewRouters of a journal's cell; Run does the work.
func NewRouters(j *Journal) *Routers { return &Routers{journal: j, silent: map[string]int{}} }

// Run until ctx ends.
func (r *Routers) Run(ctx context.Context) error {
	nc := r.journal.js.Conn()
	sub, err := nc.Subscribe(subjectAlive+"*", func(m *nats.Msg) { r.markAlive(strings.TrimPrefix(m.Subject, subjectAlive)) })
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection ends it, too
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		_ = nc.Publish(subjectAlive+r.journal.options.Instance, nil) // without a connection nobody receives it
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.count()
		}
	}
}

func (r *Routers) markAlive(instance string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if instance == r.journal.options.Instance {
		r.echoed = true
		return
	}
	r.silent[instance] = 0
}

// count a beat.
func (r *Routers) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.echoed {
		return
	}
	r.echoed = false
	for instance := range r.silent {
		r.silent[instance]++
	}
}

// Lost reports whether the router that carries an open intent out is surely down. One that was
// never received is timed from the first call for it.
func (r *Routers) Lost(position int64) bool {
	owner := r.journal.Owner(position)
	if owner == "" || owner == r.journal.options.Instance {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent[owner] += 0 // known from now on
	return r.silent[owner] >= lostAfter
}

// Alive are the other routers whose beats arrived.
func (r *Routers) Alive() (instances []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for instance, beats := range r.silent {
		if beats < lostAfter {
			instances = append(instances, instance)
		}
	}
	return instances
}

// freshTime bounds Fresh: an intent is refused after it.
const freshTime = 2 * time.Second

// Fresh waits until everything was read that any router had committed before the call. Those
// who call at once share one request, which began after all of their calls.
func (r *Routers) Fresh(ctx context.Context) error {
	own := false
	ask := func() (any, error) {
		own = true
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freshTime)
		defer cancel()
		return nil, r.journal.Fresh(ctx)
	}
	_, err, _ := r.asking.Do("", ask)
	if !own && err == nil { // another caller's request, which may have begun before this call
		_, err, _ = r.asking.Do("", ask)
	}
	return err
}
