package graphs

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"

	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// errDead is the error of a dead router.
var errDead = errors.New("this process is dead")

// life is that of the processes that a death ends together.
type life struct {
	due  chan struct{} // closed when a commit is durable that they die at
	dead chan struct{} // closed when they are dead
	once sync.Once
}

func newLife() *life { return &life{due: make(chan struct{}), dead: make(chan struct{})} }

// points selects the commits with a death. Commits are identified by their content, so that they
// are the same ones in each run of a graph, whatever runs concurrently.
type points struct {
	pass   int // of two: each kills where the other does not; negative: none does
	sample uint32

	mu      sync.Mutex // guards the rest
	counts  map[string]int
	intents map[int64]string // what the intents are about, by position
	life    *life
}

// at returns the life that dies at the commit of these entries, if any.
func (p *points) at(entries []storage.Entry, positions []int64) *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := ""
	for i, e := range entries {
		about := p.intents[e.Target]
		if e.Record.Kind == storage.KindIntent {
			if o, err := state.ReadIntent(e.Record); err == nil {
				if about = fmt.Sprint(o.Type, o.Context.Step); o.Type == "skill.call" || o.Type == "node.skip" {
					about += string(o.Args)
				}
			}
			p.intents[positions[i]] = about
		}
		key += string(e.Record.Kind) + about + " "
	}
	n := p.counts[key]
	p.counts[key]++
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	if p.pass < 0 || p.life == nil || n > 2 || (h.Sum32()/7+uint32(n+p.pass))%2 > 0 || h.Sum32()%p.sample > 0 {
		return nil
	}
	return p.life
}

// gate is a journal at which processes die: a commit to die at is durable, and its caller gets no
// answer before it is dead.
type gate struct {
	routertest.Journal
	points *points
	lethal bool // the router dies: it writes nothing more

	mu   sync.Mutex // guards dead
	dead *life      // of the router; nil: it lives
}

func (g *gate) alive() error {
	g.mu.Lock()
	l := g.dead
	g.mu.Unlock()
	if l == nil {
		return nil
	}
	<-l.dead
	return errDead
}

func (g *gate) written(entries []storage.Entry, positions []int64) error {
	l := g.points.at(entries, positions)
	if l == nil {
		return nil
	}
	if g.lethal {
		g.mu.Lock()
		g.dead = l
		g.mu.Unlock()
	}
	l.once.Do(func() { close(l.due) })
	<-l.dead
	return g.alive()
}

func (g *gate) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if err := g.alive(); err != nil {
		return storage.Result{}, err
	}
	r, err := g.Journal.Commit(ctx, c)
	if err == nil && r.Verdict == storage.Won {
		err = g.written(c.Entries, r.Positions)
	}
	return r, err
}

func (g *gate) Finish(ctx context.Context, of int64, attempt int, out storage.Record, writes []storage.Subject) (int64, error) {
	if err := g.alive(); err != nil {
		return storage.NoPosition, err
	}
	at, err := g.Journal.Finish(ctx, of, attempt, out, writes)
	if err == nil {
		err = g.written([]storage.Entry{{Record: out, Target: of}}, []int64{at})
	}
	return at, err
}

func (g *gate) Take(ctx context.Context, of int64, takeover storage.Record) (int, error) {
	if err := g.alive(); err != nil {
		return 0, err
	}
	n, err := g.Journal.Take(ctx, of, takeover)
	if err == nil {
		err = g.written([]storage.Entry{{Record: takeover, Target: of}}, []int64{storage.NoPosition})
	}
	return n, err
}
