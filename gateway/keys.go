package gateway

import (
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/ratelimit"
)

// keyLife is how long a known API key is cached, and so how long a revoked key may still open
// turns. An unknown key is always looked up.
const keyLife = 5 * time.Second

// keyCache caches the owner of an API key, by the hash of the key.
type keyCache struct {
	now func() time.Time

	mu   sync.Mutex // guards keys
	keys *ratelimit.Table[knownKey]
}

type knownKey struct {
	bus.APIKeyReply
	until time.Time
}

func newKeyCache(now func() time.Time) *keyCache {
	return &keyCache{now: now, keys: ratelimit.NewTable[knownKey](callers, nil)}
}

func (k *keyCache) get(hash string) (bus.APIKeyReply, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.keys.Get(hash)
	return known.APIKeyReply, ok && k.now().Before(known.until)
}

func (k *keyCache) put(hash string, reply bus.APIKeyReply) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys.Put(hash, reply.Tenant, "", 1, knownKey{reply, k.now().Add(keyLife)})
}
