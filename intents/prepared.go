package intents

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"sync"

	"filippo.io/edwards25519"
)

// A multiple of a point is the sum of one multiple from each window of its
// scalar: 43 windows of 6 bits hold the 253 bits of one and the last carry.
const (
	windowBits  = 6
	windowCount = 43
	windowHalf  = 1 << (windowBits - 1)
)

// multiples of a point P: row i has j·64ⁱ·P for j of 1 to 32, 215 KiB in all.
type multiples [windowCount][windowHalf]edwards25519.Point

func multiplesOf(p *edwards25519.Point) *multiples {
	m, unit := new(multiples), new(edwards25519.Point).Set(p)
	for i := range m {
		row := &m[i]
		row[0].Set(unit)
		for j := 1; j < windowHalf; j++ {
			row[j].Add(&row[j-1], unit)
		}
		unit.Double(&row[windowHalf-1])
	}
	return m
}

// addTo adds scalar·P to sum. The scalar is canonical, little endian. The time
// that it takes tells the scalar: nothing here is secret.
func (m *multiples) addTo(sum *edwards25519.Point, scalar *[32]byte) {
	var padded [34]byte
	copy(padded[:], scalar[:])
	carry := 0
	for i := range m {
		at := i * windowBits
		digit := int(binary.LittleEndian.Uint16(padded[at/8:])>>(at%8))&(1<<windowBits-1) + carry
		carry = 0
		if digit > windowHalf {
			digit, carry = digit-1<<windowBits, 1
		}
		switch row := &m[i]; {
		case digit > 0:
			sum.Add(sum, &row[digit-1])
		case digit < 0:
			sum.Subtract(sum, &row[-digit-1])
		}
	}
}

// generator's multiples are made once, when the first key is prepared.
var generator = sync.OnceValue(func() *multiples { return multiplesOf(edwards25519.NewGeneratorPoint()) })

// preparedKey verifies as crypto/ed25519 does, in less than half of the time: a
// table of the key's multiples stands for the doublings that depend on nothing
// but the key. Group and scalars are those of edwards25519. Safe for concurrent use.
type preparedKey struct {
	public   [ed25519.PublicKeySize]byte
	negative *multiples // of −A
}

// prepareKey takes keys that AdmitKey admits and no others. It takes as long as
// some five verifications.
func prepareKey(public [ed25519.PublicKeySize]byte) (*preparedKey, error) {
	if err := AdmitKey(public[:]); err != nil {
		return nil, err
	}
	a, err := new(edwards25519.Point).SetBytes(public[:])
	if err != nil {
		return nil, err
	}
	return &preparedKey{public: public, negative: multiplesOf(a.Negate(a))}, nil
}

// verify is RFC 8032 §5.1.7 as crypto/ed25519 has it: S is below the order, and
// [S]B − [k]A must have the encoding that the signature begins with, byte for byte.
func (p *preparedKey) verify(message, sig []byte) bool {
	if len(sig) != ed25519.SignatureSize {
		return false
	}
	s := [32]byte(sig[32:])
	if _, err := new(edwards25519.Scalar).SetCanonicalBytes(s[:]); err != nil {
		return false
	}
	h := sha512.New()
	h.Write(sig[:32]) // never fails
	h.Write(p.public[:])
	h.Write(message)
	var digest [sha512.Size]byte
	k, err := new(edwards25519.Scalar).SetUniformBytes(h.Sum(digest[:0]))
	if err != nil {
		return false // 64 bytes always are a scalar
	}
	sum := edwards25519.NewIdentityPoint()
	generator().addTo(sum, &s)
	p.negative.addTo(sum, (*[32]byte)(k.Bytes()))
	return bytes.Equal(sum.Bytes(), sig[:32])
}
