package intents

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"filippo.io/edwards25519"

	"aob.dev/writ/internal/durable"
)

// Role decides what a key may sign.
type Role string

// The roles of keys. RoleTask keys are ephemeral and introduced by a step intent;
// the root signs nothing but key sets and the genesis.
const (
	RoleGateway  Role = "gateway"
	RoleManager  Role = "manager"
	RolePlanner  Role = "planner"
	RoleTask     Role = "task"
	RoleWorkflow Role = "workflow"
	RoleOperator Role = "operator"
	RoleRouter   Role = "router"
	RoleLedger   Role = "ledger"
	RoleRoot     Role = "root"
)

// Key is a verification key with everything that decides its use.
type Key struct {
	KID      string
	Role     Role
	Public   ed25519.PublicKey
	Subject  string    // operator: the person
	Tenant   string    // operator: of which tenant
	NotAfter time.Time // zero: no end
	Revoked  bool
	Raw      bool   // it makes raw signatures of intents, and signs nothing else
	Task     string // RoleTask: "tenant/task_id" of the task that the key belongs to
}

// verifies reports whether sig is the key's signature of the signing input of a JWS:
// crypto/ed25519 decides, always. A key for raw signatures has none.
func (k Key) verifies(message, sig []byte) bool {
	return !k.Raw && len(k.Public) == ed25519.PublicKeySize && ed25519.Verify(k.Public, message, sig)
}

// Keys chooses the key for a kid. The error is a *Refusal with KEY_UNKNOWN or KEY_REVOKED.
type Keys interface {
	Key(kid string) (Key, error)
}

// KeysFunc is a function as Keys.
type KeysFunc func(kid string) (Key, error)

// Key implements Keys.
func (f KeysFunc) Key(kid string) (Key, error) { return f(kid) }

// Signer is a private key and its name. Key is an Ed25519 crypto.Signer, so it
// may live in a KMS or HSM.
type Signer struct {
	KID  string
	Role Role
	Raw  bool // it makes raw signatures of intents, and nothing else
	Key  crypto.Signer
}

// Rolling is a private key that is replaced while it is in use. Now returns the key
// that signs now; it must be safe for concurrent use and fast, since it is
// called for each signature. The KID of a Signer that holds one is its first key's.
type Rolling interface {
	crypto.Signer
	Now() Signer
}

// Now is the key that signs now: the signer itself, unless its key is Rolling.
func (s Signer) Now() Signer {
	if r, ok := s.Key.(Rolling); ok {
		return r.Now()
	}
	return s
}

// Public is the verification half.
func (s Signer) Public() ed25519.PublicKey {
	pub, _ := s.Key.Public().(ed25519.PublicKey)
	return pub
}

// VerificationKey is the signer's key as Keys would return it.
func (s Signer) VerificationKey() Key {
	s = s.Now()
	return Key{KID: s.KID, Role: s.Role, Raw: s.Raw, Public: s.Public()}
}

// NewSigner wraps a crypto.Signer after admission of its public key.
func NewSigner(role Role, key crypto.Signer) (Signer, error) {
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return Signer{}, errors.New("key is not Ed25519")
	}
	if err := AdmitKey(pub); err != nil {
		return Signer{}, err
	}
	return Signer{KID: Thumbprint(pub), Role: role, Key: key}, nil
}

// GenerateSigner makes a fresh key.
func GenerateSigner(role Role) (Signer, error) {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Signer{}, err
	}
	return NewSigner(role, priv)
}

// Thumbprint is the RFC 7638 thumbprint of an Ed25519 JWK (RFC 8037): our kid.
func Thumbprint(pub ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + b64.EncodeToString(pub) + `"}`))
	return b64.EncodeToString(sum[:])
}

// AdmitKey refuses public keys that crypto/ed25519 would accept but that allow
// forged signatures: encodings that are not canonical, points of small
// order, and points with a torsion component.
func AdmitKey(pub ed25519.PublicKey) error {
	if len(pub) != ed25519.PublicKeySize {
		return fmt.Errorf("Ed25519 key has %d bytes, not 32", len(pub))
	}
	p, err := new(edwards25519.Point).SetBytes(pub)
	if err != nil {
		return errors.New("Ed25519 key is not a point of the curve")
	}
	if !bytes.Equal(p.Bytes(), pub) {
		return errors.New("Ed25519 key is not canonically encoded")
	}
	identity := edwards25519.NewIdentityPoint()
	if new(edwards25519.Point).MultByCofactor(p).Equal(identity) == 1 {
		return errors.New("Ed25519 key has small order")
	}
	// [L]P = identity exactly for points of the prime-order subgroup: L-1 is the
	// largest scalar, so compute [L-1]P + P. The time may depend on a public key.
	minusOne := new(edwards25519.Scalar).Negate(scalarOne())
	lp := new(edwards25519.Point).VarTimeDoubleScalarBaseMult(minusOne, p, edwards25519.NewScalar())
	lp.Add(lp, p)
	if lp.Equal(identity) != 1 {
		return errors.New("Ed25519 key has mixed order")
	}
	return nil
}

func scalarOne() *edwards25519.Scalar {
	var one [32]byte
	one[0] = 1
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(one[:])
	if err != nil {
		panic("intents: one is canonical") // a constant
	}
	return s
}

// EncodeKey is a private key as PKCS #8 PEM.
func EncodeKey(s Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(s.Key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// WriteKey stores a private key as PKCS #8 PEM, mode 0600. It never overwrites.
func WriteKey(path string, s Signer) error {
	text, err := EncodeKey(s)
	if err != nil {
		return err
	}
	return durable.New(path, text)
}

// Private reports whether a file's mode keeps a secret: only its owner reads it, or it is a file
// that nobody may write and a group reads, as secrets are mounted for a pod.
func Private(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 || mode.Perm() == 0o440 }

// ReadKey loads a private key, refusing files that others can read.
func ReadKey(path string, role Role) (Signer, error) {
	f, err := os.Open(path) //nolint:gosec // G304: the operator names the key file
	if err != nil {
		return Signer{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Signer{}, err
	}
	if !Private(info.Mode()) {
		return Signer{}, fmt.Errorf("%s: key file is readable by others (mode %04o): chmod 600 it, and replace the key if others may have read it", path, info.Mode().Perm())
	}
	buf := make([]byte, 8<<10)
	n, _ := f.Read(buf)
	block, _ := pem.Decode(buf[:n])
	if block == nil || block.Type != "PRIVATE KEY" {
		return Signer{}, fmt.Errorf("%s: not a PKCS #8 PEM private key", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Signer{}, fmt.Errorf("%s: %v", path, err)
	}
	priv, ok := key.(ed25519.PrivateKey)
	if !ok {
		return Signer{}, fmt.Errorf("%s: not an Ed25519 key", path)
	}
	return NewSigner(role, priv)
}
