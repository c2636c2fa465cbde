package intents

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"sync"

	"filippo.io/edwards25519"
)

// multiples of a point P, from which any other is added up: a scalar is 256/bits
// signed digits, and those of one pass add j·2^(i·passes·bits)·P each, j from 1 to
// half. Between two passes the sum is doubled, bits times.
//
// More bits make verifying shorter and the table longer, more passes the reverse.
type multiples struct {
	bits, passes, half int
	points             []edwards25519.Point // half of them for every digit of a pass
}

// newMultiples takes bits that divide 8.
func newMultiples(p *edwards25519.Point, bits, passes int) *multiples {
	m := &multiples{bits: bits, passes: passes, half: 1 << (bits - 1)}
	m.points = make([]edwards25519.Point, 256/bits/passes*m.half)
	unit := new(edwards25519.Point).Set(p)
	for rest := m.points; len(rest) > 0; rest = rest[m.half:] {
		rest[0].Set(unit)
		for j := 1; j < m.half; j++ {
			rest[j].Add(&rest[j-1], unit)
		}
		for range bits * passes {
			unit.Double(unit)
		}
	}
	return m
}

// generator's multiples are made when the first key is prepared, 640 KiB.
var generator = sync.OnceValue(func() *multiples { return newMultiples(edwards25519.NewGeneratorPoint(), 8, 1) })

// multiplesOfKey are 20 KiB, and made in the time of one verification.
func multiplesOfKey(a *edwards25519.Point) *multiples { return newMultiples(a, 4, 4) }

// times sets sum to scalar·P. The time that it takes tells the scalar: nothing
// here is secret.
func (m *multiples) times(sum *edwards25519.Point, scalar *[32]byte) {
	var room [64]int
	digits := m.digits(room[:0], scalar)
	sum.Set(edwards25519.NewIdentityPoint())
	for pass := m.passes - 1; pass >= 0; pass-- {
		rest := m.points
		for i := pass; i < len(digits); i += m.passes {
			switch d := digits[i]; {
			case d > 0:
				sum.Add(sum, &rest[d-1])
			case d < 0:
				sum.Subtract(sum, &rest[-d-1])
			}
			rest = rest[m.half:]
		}
		for range m.bits * min(pass, 1) {
			sum.Double(sum)
		}
	}
}

// digits of a scalar, the least first, from half down to 1-half. The scalar is
// canonical, below 2^253: nothing is carried out of the last one.
func (m *multiples) digits(out []int, scalar *[32]byte) []int {
	carry := 0
	for at := 0; at < 256; at += m.bits {
		d := int(scalar[at/8]>>(at%8))&(1<<m.bits-1) + carry
		carry = 0
		if d > m.half {
			d, carry = d-1<<m.bits, 1
		}
		out = append(out, d)
	}
	return out
}

// preparedKey verifies as crypto/ed25519 does, in less than half of the time: a
// table of the key's multiples stands for the doublings that depend on nothing
// but the key. Group and scalars are those of edwards25519. Safe for concurrent use.
type preparedKey struct {
	public   publicKey
	negative *multiples // of −A
}

// prepareKey takes any point: what is asked of a key is asked by AdmitKey, where
// it comes in, and what verify says of a bad one is what crypto/ed25519 says. It
// takes as long as one verification.
func prepareKey(public publicKey) (*preparedKey, error) {
	a, err := new(edwards25519.Point).SetBytes(public[:])
	if err != nil {
		return nil, err
	}
	return &preparedKey{public: public, negative: multiplesOfKey(a.Negate(a))}, nil
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
	var r, b edwards25519.Point
	p.negative.times(&r, (*[32]byte)(k.Bytes()))
	generator().times(&b, &s)
	r.Add(&r, &b)
	return bytes.Equal(r.Bytes(), sig[:32])
}
