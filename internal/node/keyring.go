package node

import (
	"crypto"
	"io"
	"log/slog"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
)

// keyring holds the private keys of this process and signs with those that the key set in
// force names. A key.put takes effect at the next signature: the state has the new version
// before the order is answered, and each signature compares versions first.
type keyring struct {
	read  func() (keydir.Held, error)
	trust trust
	roles []intents.Role // that this process signs in; none: all
	log   *slog.Logger

	mu      sync.Mutex // guards what follows
	version int64      // of the key set that keys were chosen by
	keys    keydir.Keys
}

// trust is what a process knows of the log's keys.
type trust interface {
	intents.Keys
	Origin() string
	JWKS() intents.JWKS // in force
	KeySetVersion() int64
}

// folded trusts what the records say.
type folded struct{ *state.State }

// Key implements intents.Keys.
func (f folded) Key(kid string) (intents.Key, error) { return f.View().Key(kid) }

// open reads the keys.
func (k *keyring) open() (*keyring, error) { return k, k.load() }

// load chooses the keys again. The caller holds the lock, or nobody else has the keyring.
func (k *keyring) load() error {
	set := k.trust.JWKS()
	held, err := k.read()
	if err != nil {
		return err
	}
	keys, err := held.InForce(set.Keys, k.roles...)
	if err != nil {
		return err
	}
	k.version, k.keys = set.Version, keys
	return nil
}

// now is the key of a role that signs now. If the keys of a new version cannot be read, the
// old keys go on signing; once they are revoked, their signatures are refused.
func (k *keyring) now(role intents.Role) intents.Signer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := k.trust.KeySetVersion(); v != k.version {
		if err := k.load(); err != nil {
			k.log.Error("the keys of the new key set cannot be used; the old keys go on signing", slog.Int64("version", v), slog.String("error", err.Error()))
			k.version = v // logged once; the next version tries again
		} else {
			k.log.Info("key set in force", slog.Int64("version", v))
		}
	}
	return k.keys[role]
}

// signer of a role, for as long as the process runs.
func (k *keyring) signer(role intents.Role) intents.Signer {
	s := k.now(role)
	s.Key = rolling{k, role}
	return s
}

// rolling signs with the key of a role that is in force now.
type rolling struct {
	ring *keyring
	role intents.Role
}

var _ intents.Rolling = rolling{}

// Now implements intents.Rolling.
func (r rolling) Now() intents.Signer { return r.ring.now(r.role) }

// Public implements crypto.Signer.
func (r rolling) Public() crypto.PublicKey { return r.Now().Key.Public() }

// Sign implements crypto.Signer.
func (r rolling) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return r.Now().Key.Sign(rand, digest, opts)
}
