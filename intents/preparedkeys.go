package intents

import (
	"crypto/ed25519"
	"maps"
	"sync"
	"sync/atomic"
)

const (
	// prepareAfter so many signatures a key is worth its table. Most keys of
	// tasks never come so far.
	prepareAfter = 32
	// maxPrepared keys take 27 MiB. When one more comes all are forgotten: those
	// that go on signing are soon there again.
	maxPrepared = 128
	// maxCounted keys are on their way there, 200 KiB. The same happens to them.
	maxCounted = 4096
)

// preparedKeys finds the keys that sign again and again and prepares them. What
// it remembers has no part in a verdict, only in how long it takes. The zero
// value is ready. Safe for concurrent use; a key that is prepared takes no lock.
type preparedKeys struct {
	ready atomic.Pointer[map[[ed25519.PublicKeySize]byte]*preparedKey] // never changed, only replaced

	mu      sync.Mutex                             // guards counted and replacing ready
	counted map[[ed25519.PublicKeySize]byte]uint32 // signatures that crypto/ed25519 has accepted
}

// prepared are the keys of this process.
var prepared preparedKeys

// verifies says whether sig is the key's signature of message, as
// crypto/ed25519 does.
func (k Key) verifies(message, sig []byte) bool { return prepared.verify(k.Public, message, sig) }

func (p *preparedKeys) verify(public ed25519.PublicKey, message, sig []byte) bool {
	if len(public) != ed25519.PublicKeySize {
		return false
	}
	key := [ed25519.PublicKeySize]byte(public)
	if ready := p.ready.Load(); ready != nil {
		if one := (*ready)[key]; one != nil {
			return one.verify(message, sig)
		}
	}
	if !ed25519.Verify(public, message, sig) {
		return false
	}
	if p.count(key) == prepareAfter {
		if one, err := prepareKey(key); err == nil {
			p.put(key, one)
		}
	}
	return true
}

// count says how many signatures of an unprepared key were accepted.
func (p *preparedKeys) count(key [ed25519.PublicKeySize]byte) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.counted[key]
	if !known && len(p.counted) >= maxCounted || p.counted == nil {
		p.counted = make(map[[ed25519.PublicKeySize]byte]uint32)
	}
	p.counted[key] = n + 1
	return n + 1
}

func (p *preparedKeys) put(key [ed25519.PublicKeySize]byte, one *preparedKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.counted, key)
	next := make(map[[ed25519.PublicKeySize]byte]*preparedKey)
	if ready := p.ready.Load(); ready != nil && len(*ready) < maxPrepared {
		maps.Copy(next, *ready)
	}
	next[key] = one
	p.ready.Store(&next)
}
