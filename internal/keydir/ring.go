package keydir

import (
	"crypto"
	"io"
	"log/slog"
	"sync"

	"aob.dev/writ/intents"
)

// Ring has the private keys of a process and signs with those that the key set in
// force names. A key.put takes effect at the next signature: the state has the new version
// before the intent is answered, and each signature compares versions first. It is safe for
// concurrent use.
type Ring struct {
	read  func() (Signers, error)
	set   KeySet
	roles []intents.Role
	log   *slog.Logger

	mu      sync.Mutex // guards the fields below
	version int64      // of the key set that keys were chosen by
	keys    Keys
}

// KeySet is the key set in force.
type KeySet interface {
	JWKS() intents.JWKS
	KeySetVersion() int64
}

// OpenRing reads the keys of a process that signs in some roles; none: in all.
func OpenRing(read func() (Signers, error), set KeySet, log *slog.Logger, roles ...intents.Role) (*Ring, error) {
	k := &Ring{read: read, set: set, roles: roles, log: log}
	return k, k.load()
}

// load chooses the keys again. The caller holds the lock, or is the only user of the ring.
func (k *Ring) load() error {
	set := k.set.JWKS()
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

// Now is the key of a role that signs now. If the keys of a new version cannot be read, the
// old keys go on signing; once they are revoked, their signatures are refused.
func (k *Ring) Now(role intents.Role) intents.Signer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := k.set.KeySetVersion(); v != k.version {
		if err := k.load(); err != nil {
			k.log.Error("the keys of the new key set cannot be used; the old keys go on signing", slog.Int64("version", v), slog.String("error", err.Error()))
			k.version = v // logged once; the next version tries again
		} else {
			k.log.Info("key set in force", slog.Int64("version", v))
		}
	}
	return k.keys[role]
}

// Signer of a role, for as long as the process runs.
func (k *Ring) Signer(role intents.Role) intents.Signer {
	s := k.Now(role)
	s.Key = rolling{k, role}
	return s
}

// rolling signs with the key of a role that is in force now.
type rolling struct {
	ring *Ring
	role intents.Role
}

var _ intents.Rolling = rolling{}

// Now implements intents.Rolling.
func (r rolling) Now() intents.Signer { return r.ring.Now(r.role) }

// Public implements crypto.Signer.
func (r rolling) Public() crypto.PublicKey { return r.Now().Key.Public() }

// Sign implements crypto.Signer.
func (r rolling) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return r.Now().Key.Sign(rand, digest, opts)
}
