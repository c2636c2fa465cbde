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

// Bounds of the cached answers, in bytes. An answer counts as keptExtra more than its size, for its
// metadata.
const (
	maxKept    = 64 << 20
	maxKeptOne = 4 << 20
	keptExtra  = 6 << 10
)

// keptShares bound all answers, those of a tenant, and those of its user; answers for all users of
// the tenant have another share of that size.
var keptShares = ratelimit.Shares{All: maxKept, Tenant: maxKept / 4, Key: maxKept / 8}

// Cache stores answers of pure skills for the time that their approval sets. One call at a time
// asks a server for a cacheable answer; equal calls wait for it. It is in memory only, so no answer
// outlives the headers and the environment of the process that called the server.
type Cache struct {
	now func() time.Time

	mu       sync.Mutex // guards the fields below
	swept    int        // how often answers were invalidated
	kept     *ratelimit.Table[cachedAnswer]
	inFlight map[string]chan struct{} // closed when the call has ended
}

// cachedAnswer is an answer and the intent that produced it.
type cachedAnswer struct {
	content  executors.Content
	position int64
	at       time.Time

	name         string // <skill>:sha256:<hex>: its name for people
	tenant, user string // whose calls it serves; no user: those of the tenant
	plan         string // plan or run of the intent
}

// serves reports whether calls of an actor may get the answer.
func (k cachedAnswer) serves(a intents.Principal) bool {
	return k.tenant == a.Tenant && (k.user == "" || k.user == a.UserID)
}

func (k cachedAnswer) size() int { return len(k.content.JSON) + len(k.content.Text) }

// NewCache makes an empty one.
func NewCache(now func() time.Time) *Cache {
	return &Cache{now: now, kept: ratelimit.NewTable[cachedAnswer](keptShares, nil), inFlight: map[string]chan struct{}{}}
}

// keyOf names everything that an answer depends on; empty: it must not be cached. Another approval,
// even of the same version, is another pin; any later erasure makes another key, whether or not it
// was of the intent that produced the answer. The digest of the pin covers the server, and with it
// the credentials that this process sends there.
func keyOf(in invocation) (string, error) {
	t := in.intent.Ticket
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

// get returns a cached answer, or waits once for a call under way that may produce it. If there is
// none, the caller asks the server and calls end when done.
func (c *Cache) get(ctx context.Context, key string, age time.Duration) (k cachedAnswer, found bool, end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, found = c.fresh(key, age); found {
		return k, true, nil, nil
	}
	asked, busy := c.inFlight[key]
	if !busy {
		mine := make(chan struct{})
		c.inFlight[key] = mine
		return k, false, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.inFlight, key)
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
func (c *Cache) fresh(key string, age time.Duration) (cachedAnswer, bool) {
	k, ok := c.kept.Get(key)
	since := c.now().Sub(k.at)
	return k, ok && since >= 0 && since < age
}

// keep caches an answer in place of the least recently used ones of its share. It drops an answer
// requested before the last invalidation (swept).
func (c *Cache) keep(key string, k cachedAnswer, swept int) {
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

// sweeps is how often answers were invalidated.
func (c *Cache) sweeps() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.swept
}

// forget drops answers, also those under way, and returns their number.
func (c *Cache) forget(which func(cachedAnswer) bool) (removed int) {
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

// maxListed bounds the answers that Stats names.
const maxListed = 100

// invalidate drops the answers that serve the actor, not those of others.
func (s *skills) invalidate(_ context.Context, o *executors.Intent, a catalog.CacheInvalidate) (*executors.Result, error) {
	if a.Scope == catalog.CacheKey && !strings.Contains(a.Key, ":sha256:") {
		return nil, executors.Fail(intents.MalformedArgs, "/key names no answer: write <skill>:sha256:<hex>, as `writ skill cache stats` prints it")
	}
	removed := s.cache.forget(func(k cachedAnswer) bool {
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

// Stats counts the answers that serve a user, and names the newest.
func (c *Cache) Stats(of intents.Principal) catalog.CacheStatsResult {
	out := catalog.CacheStatsResult{Answers: []catalog.CachedAnswer{}}
	c.mu.Lock()
	for _, k := range c.kept.All() {
		if k.serves(of) {
			out.SizeBytes += int64(k.size())
			out.Answers = append(out.Answers, catalog.CachedAnswer{Key: k.name, SizeBytes: int64(k.size()), Shared: k.user == "", KeptAt: k.at})
		}
	}
	c.mu.Unlock()
	slices.SortStableFunc(out.Answers, func(a, b catalog.CachedAnswer) int {
		return cmp.Or(b.KeptAt.Compare(a.KeptAt), strings.Compare(a.Key, b.Key))
	})
	out.Entries = len(out.Answers)
	out.Answers = out.Answers[:min(out.Entries, maxListed)]
	return out
}
