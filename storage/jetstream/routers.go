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
	// subjectAlive begins the subject on which each router says that it lives.
	subjectAlive = "writ.alive."
	// beat is how often it does.
	beat = 2 * time.Second
	// lostAfter so many beats in silence a router is lost: 16 s.
	lostAfter = 8
)

// Routers tells the other routers of a cell that this one lives, and hears which of them do.
// It implements router.Peers.
//
// A silence is counted in beats at which this router has heard itself. So one that was held,
// or cut off, does not take the others for lost when it comes back.
type Routers struct {
	journal *Journal
	asking  singleflight.Group

	mu     sync.Mutex     // guards what follows
	silent map[string]int // beats without a word, by instance
	heard  bool           // this router has heard itself since its last beat
}

// NewRouters of a journal's cell; Run does the work.
func NewRouters(j *Journal) *Routers { return &Routers{journal: j, silent: map[string]int{}} }

// Run until ctx ends.
func (r *Routers) Run(ctx context.Context) error {
	nc := r.journal.js.Conn()
	sub, err := nc.Subscribe(subjectAlive+"*", func(m *nats.Msg) { r.hear(strings.TrimPrefix(m.Subject, subjectAlive)) })
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection ends it, too
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		_ = nc.Publish(subjectAlive+r.journal.options.Instance, nil) // without a connection nobody hears it
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.count()
		}
	}
}

func (r *Routers) hear(instance string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if instance == r.journal.options.Instance {
		r.heard = true
		return
	}
	r.silent[instance] = 0
}

// count a beat.
func (r *Routers) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.heard {
		return
	}
	r.heard = false
	for instance := range r.silent {
		r.silent[instance]++
	}
}

// Lost says whether the router that carries an open order out is surely gone. One that was
// never heard gets its time from when it is first asked for.
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

// Alive are the other routers that were heard.
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

// freshTime bounds Fresh: an order is refused meanwhile.
const freshTime = 2 * time.Second

// Fresh waits until everything was seen that any router had committed before the call. Those
// who ask at once are answered together, by a question that began after all of their calls.
func (r *Routers) Fresh(ctx context.Context) error {
	own := false
	ask := func() (any, error) {
		own = true
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freshTime)
		defer cancel()
		return nil, r.journal.Fresh(ctx)
	}
	_, err, _ := r.asking.Do("", ask)
	if !own && err == nil { // somebody else's question, which may have begun before this call
		_, err, _ = r.asking.Do("", ask)
	}
	return err
}
