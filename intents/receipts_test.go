package intents

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"testing"
)

// TestReceiptsTogether: many receipts of several keys pass together, and one
// changed byte anywhere in one of them is found, as crypto/ed25519 finds it.
func TestReceiptsTogether(t *testing.T) {
	keys := map[string]Key{}
	var signers []Signer
	for _, role := range []Role{RoleRouter, RoleRouter, RoleLedger} {
		s, err := GenerateSigner(role)
		if err != nil {
			t.Fatal(err)
		}
		keys[s.KID] = s.VerificationKey()
		signers = append(signers, s)
	}
	known := KeysFunc(func(kid string) (Key, error) {
		if k, ok := keys[kid]; ok {
			return k, nil
		}
		return Key{}, Refuse(KeyUnknown, "", "unknown")
	})
	receipt := func(i int) Receipt {
		d := Digest(fmt.Append(nil, i))
		return Receipt{Issuer: "writ/x", IntentID: d, Position: int64(i), Code: OK, PolicyDigest: d, RecordDigest: d, OutcomeDigest: d, WithinSec: PromiseSeconds}
	}
	const n = 70
	tokens := make([]string, n)
	for i := range tokens {
		var err error
		if tokens[i], err = IssueReceipt(signers[i%2], receipt(i)); err != nil {
			t.Fatal(err)
		}
	}
	together := func(tokens []string) bool {
		var b Receipts
		for i, token := range tokens {
			if !b.Add(token, receipt(i), known) {
				return false
			}
		}
		return b.Verify()
	}
	if !together(tokens) || !together(nil) {
		t.Fatal("honest receipts do not pass")
	}
	at := n / 2
	for i := range len(tokens[at]) {
		changed := []byte(tokens[at])
		changed[i] ^= 1
		all := append([]string(nil), tokens...)
		all[at] = string(changed)
		_, err := OpenReceipt(all[at], known)
		if together(all) != (err == nil) {
			t.Fatalf("byte %d changed: together %v, alone %v", i, together(all), err)
		}
	}
	all := append([]string(nil), tokens...)
	all[3], all[5] = all[5], all[3]
	if together(all) {
		t.Error("two receipts that have changed places pass")
	}
	foreign, err := IssueReceipt(signers[2], receipt(0))
	if err != nil {
		t.Fatal(err)
	}
	if together(append([]string{foreign}, tokens[1:]...)) {
		t.Error("a receipt by a ledger key passes")
	}
}

// TestReceiptsOddPoints: encodings that a point has beside its own are left to
// crypto/ed25519, which refuses them.
func TestReceiptsOddPoints(t *testing.T) {
	for _, c := range []struct {
		point []byte
		odd   bool
	}{
		{append([]byte{1}, make([]byte, 31)...), true},
		{append(append([]byte{0xed}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f), true},
		{ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey), false},
	} {
		if seldom(c.point) != c.odd {
			t.Errorf("%x", c.point)
		}
	}
}
