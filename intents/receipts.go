package intents

import (
	"bytes"
	"crypto/ed25519"
	"strings"

	"github.com/hdevalence/ed25519consensus"
)

// Receipts verifies many receipts at once, in about half of the time that each alone
// takes. Nobody without the private key can make receipts that pass it. The owner of the
// key can make some that crypto/ed25519 would refuse (R with a torsion component), and
// could as well have signed properly: so it is good for receipts, and for nothing that
// decides who may do what. The zero value is ready. One goroutine uses it.
type Receipts struct {
	batch ed25519consensus.BatchVerifier
	some  bool
}

// Add takes a token that should be the given receipt, signed by a router's key. False: it
// is not, and OpenReceipt gives the reason.
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
	if seldom(sig[:32]) {
		return false
	}
	b.batch.Add(key.Public, []byte(token[:len(header)+1+len(claims)]), sig)
	b.some = true
	return true
}

// seldom says that a point may have a second encoding. No honest signature has such a
// point; crypto/ed25519 decides about it.
func seldom(point []byte) bool {
	middle := point[1:31]
	return bytes.Count(middle, []byte{0xff}) == len(middle) || bytes.Count(middle, []byte{0}) == len(middle)
}

// Verify says whether the signatures of all receipts that were added hold. If not,
// OpenReceipt says of which one.
func (b *Receipts) Verify() bool { return !b.some || b.batch.Verify() }
