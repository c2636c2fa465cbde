package intents

import (
	"crypto/ed25519"
	"sync"
)

const (
	// prepareAfter so many signatures a key gets its table, which the next four
	// pay back. The key of the shortest tasks never comes so far.
	prepareAfter = 4
	// maxPrepared keys take 20 MiB. When one more comes all are forgotten: those
	// that go on signing are soon there again.
	maxPrepared = 1024
	// maxCounted keys are on their way there, 200 KiB. The same happens to them.
	maxCounted = 4096
)

// preparedKeys finds the keys that sign again and again and prepares them. What
// it remembers has no part in a verdict, only in how long it takes. The zero
// value is ready. Safe for concurrent use.
type preparedKeys struct {
	mu      sync.RWMutex // guards both
	ready   map[publicKey]*preparedKey
	counted map[publicKey]int // signatures that crypto/ed25519 has accepted
}

type publicKey = [ed25519.PublicKeySize]byte

// prepared are the keys of this process.
var prepared preparedKeys

// ForgetKeys lets the next signatures of every key take as long as its first
// ones: for measurements.
func ForgetKeys() { prepared.forget() }

// verifies says whether sig is the key's signature of message, as
// crypto/ed25519 does.
func (k Key) verifies(message, sig []byte) bool { return prepared.verify(k.Public, message, sig) }

func (p *preparedKeys) verify(public ed25519.PublicKey, message, sig []byte) bool {
	if len(public) != ed25519.PublicKeySize {
		return false
	}
	key := publicKey(public)
	if one := p.get(key); one != nil {
		return one.verify(message, sig)
	}
	if !ed25519.Verify(public, message, sig) {
		return false
	}
	if p.count(key) == prepareAfter {
		if one, err := prepareKey(key); err == nil {
			p.put(one)
		}
	}
	return true
}

// get is nil for a key that is not prepared.
func (p *preparedKeys) get(key publicKey) *preparedKey {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.ready[key]
}

// count says how many signatures of an unprepared key were accepted.
func (p *preparedKeys) count(key publicKey) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.counted[key] + 1
	if p.counted == nil || n == 1 && len(p.counted) >= maxCounted {
		p.counted = make(map[publicKey]int)
	}
	p.counted[key] = n
	return n
}

func (p *preparedKeys) put(one *preparedKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready == nil || len(p.ready) >= maxPrepared {
		p.ready = make(map[publicKey]*preparedKey)
	}
	p.ready[one.public] = one
	delete(p.counted, one.public)
}

func (p *preparedKeys) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.counted = nil, nil
}
