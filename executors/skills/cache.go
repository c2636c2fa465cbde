package skills

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
)

// Bounds of the answers that are kept in memory, in bytes. An answer counts as keptExtra more
// than it has, for what is remembered beside it.
const (
	maxKept    = 64 << 20
	maxKeptOne = 4 << 20
	keptExtra  = 6 << 10
)

// keptShares are of all answers, of a tenant's, and of those of its user; what all users of the
// tenant get is another share as large.
var keptShares = ratelimit.Shares{All: maxKept, Tenant: maxKept / 4, Key: maxKept / 8}

// cache keeps answers of pure skills whose approval says for how long. One call at a time
// asks a server for an answer that may be kept; equal ones wait for it. It is in memory
// alone: a process that begins has none, and so no answer outlives the headers and the
// environment with which its server was asked.
type cache struct {
	now func() time.Time

	mu    sync.Mutex // guards what follows
	swept int        // how often answers were forgotten by order
	kept  *ratelimit.Table[kept]
	asked map[string]chan struct{} // closed when the call has ended
}

// kept is an answer, and the order that brought it.
type kept struct {
	content  executors.Content
	position int64
	at       time.Time

	name         string // <skill>:sha256:<hex>: what people call it
	tenant, user string // whose calls it serves; no user: those of the tenant
	plan         string // plan or run of the order
}

// serves says whether calls of an actor may get the answer.
func (k kept) serves(a intents.Principal) bool {
	return k.tenant == a.Tenant && (k.user == "" || k.user == a.UserID)
}

func (k kept) size() int { return len(k.content.JSON) + len(k.content.Text) }

func newCache(now func() time.Time) *cache {
	return &cache{now: now, kept: ratelimit.NewTable[kept](keptShares, nil), asked: map[string]chan struct{}{}}
}

// keyOf names all that an answer depends on; empty: it must not be kept. Another approval,
// even of the same version, is another pin; any erasure since makes another key, whether
// or not it was of the order that brought the answer. The digest of the pin covers the
// server, and with it the credentials that this process sends there.
func keyOf(in invocation) (string, error) {
	t := in.order.Ticket
	if in.pin.CacheSeconds <= 0 || in.pin.Effect != string(catalog.Pure) {
		return "", nil
	}
	user := t.Actor.UserID
	if in.pin.Shared {
		user = ""
	}
	raw, err := json.Marshal(struct {
		Tenant, User string
		Shared       bool
		Pin          intents.Pin
		Obligations  []intents.Obligation
		Types        []intents.PayloadType
		Erasures     int
		Input        []byte
	}{t.Actor.Tenant, user, in.pin.Shared, in.pin, t.Obligations, t.Types, t.Erasures, in.input})
	return intents.Digest(raw), err
}

// get gives an answer that is kept, or waits once for a call under way that may bring it.
// Where there is none, the caller asks the server, and calls end when that is done.
func (c *cache) get(ctx context.Context, key string, age time.Duration) (k kept, found bool, end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, found = c.fresh(key, age); found {
		return k, true, nil, nil
	}
	asked, busy := c.asked[key]
	if !busy {
		mine := make(chan struct{})
		c.asked[key] = mine
		return k, false, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.asked, key)
			close(mine)
		}, nil
	}
	c.mu.Unlock()
	select {
	case <-asked:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	if err == nil {
		k, found = c.fresh(key, age)
	}
	return k, found, func() {}, err
}

// fresh needs mu.
func (c *cache) fresh(key string, age time.Duration) (kept, bool) {
	k, ok := c.kept.Get(key)
	since := c.now().Sub(k.at)
	return k, ok && since >= 0 && since < age
}

// keep an answer, in the place of those of its share that were not used for longest; none that was asked
// for before answers were forgotten (swept).
func (c *cache) keep(key string, k kept, swept int) {
	if k.size() > maxKeptOne {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if swept != c.swept {
		return
	}
	c.kept.Put(key, k.tenant, k.user, keptExtra+k.size(), k)
}

// sweeps is how often answers were forgotten by order.
func (c *cache) sweeps() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.swept
}

// forget drops answers, and those that are on their way, and says how many there were.
func (c *cache) forget(which func(kept) bool) (removed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.swept++
	for key, k := range c.kept.All() {
		if which(k) {
			c.kept.Remove(key)
			removed++
		}
	}
	return removed
}

// maxListed bounds the answers that cache.stats names.
const maxListed = 100

// invalidate drops answers that serve the actor: what others get is theirs.
func (s *skills) invalidate(_ context.Context, o *executors.Order, a catalog.CacheInvalidate) (*executors.Result, error) {
	if a.Scope == catalog.CacheKey && !strings.Contains(a.Key, ":sha256:") {
		return nil, executors.Fail(intents.MalformedArgs, "/key names no answer: write <skill>:sha256:<hex>, as `writ cache stats` prints it")
	}
	removed := s.cache.forget(func(k kept) bool {
		if !k.serves(o.Ticket.Actor) {
			return false
		}
		skill, _, one := strings.Cut(k.name, ":")
		switch {
		case k.name == a.Key:
			return one
		case a.Scope == catalog.CacheSkill:
			return skill == a.Key
		}
		return a.Scope == catalog.CacheWorkflow && k.plan != "" && k.plan == a.Key
	})
	return &executors.Result{Value: catalog.CacheInvalidateResult{Removed: removed}}, nil
}

// stats counts the answers that serve the actor, and names the newest.
func (s *skills) stats(_ context.Context, o *executors.Order, _ struct{}) (*executors.Result, error) {
	out := catalog.CacheStatsResult{Answers: []catalog.CachedAnswer{}}
	s.cache.mu.Lock()
	for _, k := range s.cache.kept.All() {
		if k.serves(o.Ticket.Actor) {
			out.SizeBytes += int64(k.size())
			out.Answers = append(out.Answers, catalog.CachedAnswer{Key: k.name, SizeBytes: int64(k.size()), Shared: k.user == "", KeptAt: k.at})
		}
	}
	s.cache.mu.Unlock()
	slices.SortStableFunc(out.Answers, func(a, b catalog.CachedAnswer) int {
		return cmp.Or(b.KeptAt.Compare(a.KeptAt), strings.Compare(a.Key, b.Key))
	})
	out.Entries = len(out.Answers)
	out.Answers = out.Answers[:min(out.Entries, maxListed)]
	return &executors.Result{Value: out}, nil
}
