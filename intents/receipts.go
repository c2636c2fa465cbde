package intents

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"strings"

	"filippo.io/edwards25519"
)

// Receipts verifies many receipts at once, for about a third of what each alone
// costs: it asks whether a random combination of their equations holds, in which
// receipts of one key share a term.
//
//	Σ zᵢsᵢ·B − Σ (Σ zᵢkᵢ)·A − Σ zᵢ·Rᵢ = 0, zᵢ of 128 random bits
//
// Nobody without the private key can make receipts that pass it. Who has that
// key can make some that crypto/ed25519 would refuse (R with a torsion
// component), where he could as well have signed properly: so this is for
// receipts, whose signer vouches for what he says, and for nothing that decides
// who may do what. The zero value is ready. One goroutine uses it.
type Receipts struct {
	terms []receiptTerm
}

type receiptTerm struct {
	key  ed25519.PublicKey // admitted: canonical, of prime order
	r    *edwards25519.Point
	s, k *edwards25519.Scalar
}

// Add takes a token that should be the given receipt, signed by a router's key.
// False: it does not look so, and OpenReceipt gives the reason.
func (b *Receipts) Add(token string, want Receipt, keys Keys) bool {
	header, rest, _ := strings.Cut(token, ".")
	claims, encoded, ok := strings.Cut(rest, ".")
	payload, err := marshalCanonical(want)
	if !ok || err != nil || claims != b64.EncodeToString(payload) || len(encoded) != signatureText {
		return false
	}
	kid, err := parseHeader(header, TypReceipt)
	if err != nil {
		return false
	}
	key, err := keys.Key(kid)
	sig, err2 := b64.DecodeString(encoded)
	if err != nil || err2 != nil || key.Role != RoleRouter || len(sig) != ed25519.SignatureSize {
		return false
	}
	t := receiptTerm{key: key.Public, r: new(edwards25519.Point), s: new(edwards25519.Scalar)}
	if _, err := t.r.SetBytes(sig[:32]); err != nil || seldom(sig[:32]) {
		return false
	}
	if _, err := t.s.SetCanonicalBytes(sig[32:]); err != nil {
		return false
	}
	h := sha512.New()
	h.Write(sig[:32]) // never fails
	h.Write(key.Public)
	h.Write([]byte(token[:len(header)+1+len(claims)]))
	if t.k, err = new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil)); err != nil {
		return false
	}
	b.terms = append(b.terms, t)
	return true
}

// seldom says that a point may have a second encoding: no honest signature has
// such a one, and crypto/ed25519 is asked.
func seldom(point []byte) bool {
	middle := point[1:31]
	return bytes.Count(middle, []byte{0xff}) == len(middle) || bytes.Count(middle, []byte{0}) == len(middle)
}

// Verify says that all receipts that were added are signed as they say. After a
// false one of them is not; which one OpenReceipt says.
func (b *Receipts) Verify() bool {
	n := len(b.terms)
	if n == 0 {
		return true
	}
	random := make([]byte, 16*n)
	_, _ = rand.Read(random) // crypto/rand.Read never fails
	base := edwards25519.NewScalar()
	scalars, points := make([]*edwards25519.Scalar, 0, n+2), make([]*edwards25519.Point, 0, n+2)
	signers := map[string]*edwards25519.Scalar{}
	for i, t := range b.terms {
		var wide [32]byte
		copy(wide[:], random[16*i:16*i+16])
		z, err := new(edwards25519.Scalar).SetCanonicalBytes(wide[:])
		if err != nil {
			return false // 128 bits always are below the order
		}
		base.MultiplyAdd(z, t.s, base)
		sum := signers[string(t.key)]
		if sum == nil {
			sum = edwards25519.NewScalar()
			signers[string(t.key)] = sum
		}
		sum.MultiplyAdd(z, t.k, sum)
		scalars, points = append(scalars, z), append(points, t.r)
	}
	for key, sum := range signers {
		a, err := new(edwards25519.Point).SetBytes([]byte(key))
		if err != nil {
			return false
		}
		scalars, points = append(scalars, sum), append(points, a)
	}
	// What is on the right of the equation, less what is on its left.
	scalars, points = append(scalars, base.Negate(base)), append(points, edwards25519.NewGeneratorPoint())
	sum := new(edwards25519.Point).VarTimeMultiScalarMult(scalars, points)
	return sum.Equal(edwards25519.NewIdentityPoint()) == 1
}
