package intents

import (
	"crypto/ed25519"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"
)

// commit signs with R encoded as given: S = r + k·a. What R has beyond r·B, such
// as a point of small order or another spelling, S does not make up for.
func commit(public []byte, secret, r *edwards25519.Scalar, bigR, message []byte) []byte {
	k := uniform(bigR, public, message)
	return slices.Concat(bigR, new(edwards25519.Scalar).MultiplyAdd(k, secret, r).Bytes())
}

// TestKeyVerifies judges signatures of many keys and all that is made of them: what
// is not the signature byte for byte is refused, other spellings of it included.
// Keys, messages and changes are the same each time.
func TestKeyVerifies(t *testing.T) {
	var seed [32]byte
	source := rand.NewChaCha8(seed)
	random := rand.New(source)
	accepted, refused := 0, 0
	for range 16 {
		source.Read(seed[:])
		key, err := NewSigner(RoleManager, ed25519.NewKeyFromSeed(seed[:]))
		if err != nil {
			t.Fatal(err)
		}
		by := key.VerificationKey()
		verdict := func(message, sig []byte, want bool) {
			t.Helper()
			if by.verifies(message, sig) != want {
				t.Errorf("key %x, message %x, signature %x: not %t", by.Public, message, sig, want)
			}
			if want {
				accepted++
			} else {
				refused++
			}
		}
		for range 24 {
			message := make([]byte, random.IntN(300))
			source.Read(message)
			sig := ed25519.Sign(key.Key.(ed25519.PrivateKey), message)
			verdict(message, sig, true)
			verdict(slices.Concat(message, []byte{0}), sig, false)
			for range 3 {
				changed := slices.Clone(sig)
				changed[random.IntN(len(sig))] ^= 1 << random.IntN(8)
				verdict(message, changed, false)
			}
			again := mustDecode(addL(b64.EncodeToString(sig))) // S + L
			verdict(message, again, false)
			for _, bit := range []byte{0x20, 0x40, 0x80} {
				again = slices.Clone(sig)
				again[63] |= bit
				verdict(message, again, false)
			}
		}
		message, secret := seed[:], secretOf(key)
		verdict(message, nil, false)
		for _, n := range []int{1, 32, 63, 65, 128} {
			verdict(message, make([]byte, n), false)
		}
		r := uniform(seed[:])
		point := new(edwards25519.Point).ScalarBaseMult(r)
		verdict(message, commit(key.Public(), secret, r, point.Bytes(), message), true)
		for name, encoded := range weakKeys {
			// With the nonce zero only the one spelling of the identity is right.
			verdict(message, commit(key.Public(), secret, edwards25519.NewScalar(), unhex(t, encoded), message), name == "order 1")
			if torsion, err := new(edwards25519.Point).SetBytes(unhex(t, encoded)); err == nil && torsion.Equal(edwards25519.NewIdentityPoint()) == 0 {
				moved := new(edwards25519.Point).Add(point, torsion).Bytes()
				verdict(message, commit(key.Public(), secret, r, moved, message), false)
			}
		}
	}
	if accepted < 400 || refused < 3400 {
		t.Errorf("%d were accepted and %d refused", accepted, refused)
	}
}
