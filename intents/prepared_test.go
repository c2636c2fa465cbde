package intents

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"
)

// readied prepares a point.
func readied(t testing.TB, public []byte) *preparedKey {
	t.Helper()
	p, err := prepareKey(publicKey(public))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// agrees compares the verdicts, which must be one.
func agrees(t testing.TB, p *preparedKey, message, sig []byte) bool {
	t.Helper()
	got := p.verify(message, sig)
	if want := ed25519.Verify(p.public[:], message, sig); got != want {
		t.Errorf("key %x, message %x, signature %x: %t, crypto/ed25519 says %t", p.public, message, sig, got, want)
	}
	return got
}

// order of the group, from RFC 8032 §5.1.
var groupOrder, _ = new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// little endian, 32 bytes.
func littleEndian(x *big.Int) []byte {
	out := x.FillBytes(make([]byte, 32))
	slices.Reverse(out)
	return out
}

// TestMultiples compares with the library's multiplication, where the windows of
// the scalar are the least, the most and on both sides of the change of sign.
func TestMultiples(t *testing.T) {
	p, err := new(edwards25519.Point).SetBytes(vManager.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*multiples{multiplesOfKey(p), newMultiples(p, 8, 1), newMultiples(p, 8, 4), newMultiples(p, 2, 8)} {
		for _, x := range oddScalars(m.bits) {
			s, err := new(edwards25519.Scalar).SetCanonicalBytes(littleEndian(x))
			if err != nil {
				t.Fatal(err)
			}
			want, got := new(edwards25519.Point).ScalarMult(s, p), new(edwards25519.Point)
			if m.times(got, (*[32]byte)(s.Bytes())); got.Equal(want) != 1 {
				t.Errorf("digits of %d bits, %d passes: %x times P is another point", m.bits, m.passes, x)
			}
		}
	}
}

// oddScalars have every digit next to a limit in each window, alone and in all.
func oddScalars(bits int) []*big.Int {
	out := []*big.Int{new(big.Int).Sub(groupOrder, big.NewInt(1)), new(big.Int).Rsh(groupOrder, 1), new(big.Int).Lsh(big.NewInt(1), 252)}
	for i := range 2 << bits {
		out = append(out, big.NewInt(int64(i)))
	}
	half := int64(1) << (bits - 1)
	for _, digit := range []int64{1, half - 1, half, half + 1, 2*half - 1} {
		all := new(big.Int)
		for at := 0; at < 256; at += bits {
			one := new(big.Int).Lsh(big.NewInt(digit), uint(at))
			all.Or(all, one)
			out = append(out, one.Mod(one, groupOrder))
		}
		out = append(out, new(big.Int).Rsh(all, 4), all.Mod(all, groupOrder)) // 252 bits as they are
	}
	return out
}

// TestPreparedRFC8032: the first answers of RFC 8032 §7.1, and its last.
func TestPreparedRFC8032(t *testing.T) {
	for _, c := range []struct{ seed, public, message, sig string }{
		{
			"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
		},
		{
			"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
		},
		{
			"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
			"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
		},
		{
			"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42", "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
			"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
			"dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
		},
	} {
		public, message, sig := unhex(t, c.public), unhex(t, c.message), unhex(t, c.sig)
		if got := ed25519.Sign(ed25519.NewKeyFromSeed(unhex(t, c.seed)), message); !bytes.Equal(got, sig) {
			t.Fatalf("%s: crypto/ed25519 signs %x", c.seed, got)
		}
		p, err := prepareKey(publicKey(public))
		if err != nil {
			t.Fatal(err)
		}
		if !agrees(t, p, message, sig) || agrees(t, p, append(message, 0), sig) {
			t.Errorf("key %s: the answer is refused, or more than it accepted", c.public)
		}
	}
}

// commit signs with R encoded as given: S = r + k·a. What R is beside r·B, such
// as a point of small order or another spelling, S does not make up for.
func commit(public []byte, secret, r *edwards25519.Scalar, bigR, message []byte) []byte {
	k := uniform(bigR, public, message)
	return slices.Concat(bigR, new(edwards25519.Scalar).MultiplyAdd(k, secret, r).Bytes())
}

// TestPreparedAgrees compares with crypto/ed25519 over signatures of many keys
// and all that is made of them. Keys, messages and changes are the same each time.
func TestPreparedAgrees(t *testing.T) {
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
		p, err := prepareKey(publicKey(key.Public()))
		if err != nil {
			t.Fatal(err)
		}
		verdict := func(message, sig []byte, want bool) {
			t.Helper()
			if agrees(t, p, message, sig) != want {
				t.Errorf("key %x, message %x, signature %x: not %t", p.public, message, sig, want)
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

// TestPreparedAgreesOnWeakKeys: no key of these is ever prepared. If one were, it
// would be judged no better and no worse.
func TestPreparedAgreesOnWeakKeys(t *testing.T) {
	good, err := new(edwards25519.Point).SetBytes(vStranger.Public())
	if err != nil {
		t.Fatal(err)
	}
	forged := 0
	for _, encoded := range weakKeys {
		torsion, err := new(edwards25519.Point).SetBytes(unhex(t, encoded))
		if err != nil {
			continue // not a point
		}
		for _, c := range []struct {
			public []byte
			secret *edwards25519.Scalar
		}{
			{unhex(t, encoded), edwards25519.NewScalar()},
			{new(edwards25519.Point).Add(good, torsion).Bytes(), secretOf(vStranger)},
		} {
			p := readied(t, c.public)
			for i := range byte(8) {
				message, r := []byte{i}, uniform([]byte{i})
				if agrees(t, p, message, commit(c.public, c.secret, r, new(edwards25519.Point).ScalarBaseMult(r).Bytes(), message)) {
					forged++
				}
				for _, bigR := range weakKeys {
					agrees(t, p, message, commit(c.public, c.secret, edwards25519.NewScalar(), unhex(t, bigR), message))
				}
			}
		}
	}
	if forged == 0 {
		t.Error("no signature was one that crypto/ed25519 accepts for a weak key")
	}
}

// FuzzPrepared: crypto/ed25519 and a prepared key say the same of any signature,
// and of one that is right but for what is added to it.
func FuzzPrepared(f *testing.F) {
	signed := ed25519.Sign(vManager.Key.(ed25519.PrivateKey), []byte("order"))
	plusL := mustDecode(addL(b64.EncodeToString(signed)))
	f.Add([]byte("order"), signed)
	f.Add([]byte("order"), plusL)
	f.Add([]byte("order"), make([]byte, 64))
	f.Add([]byte(""), slices.Concat(unhexed(nonCanonicalIdentity), make([]byte, 32)))
	f.Add([]byte("order"), signed[:63])
	p := readied(f, vManager.Public())
	f.Fuzz(func(t *testing.T, message, sig []byte) {
		agrees(t, p, message, sig)
		honest := ed25519.Sign(vManager.Key.(ed25519.PrivateKey), message)
		for i := range min(len(sig), len(honest)) {
			honest[i] ^= sig[i]
		}
		agrees(t, p, message, honest)
		// The order has no say in what R is: any bytes as R and the S that fits them.
		if len(sig) >= 32 {
			agrees(t, p, message, commit(vManager.Public(), secretOf(vManager), edwards25519.NewScalar(), sig[:32], message))
			r := uniform(sig)
			agrees(t, p, message, commit(vManager.Public(), secretOf(vManager), r, new(edwards25519.Point).ScalarBaseMult(r).Bytes(), message))
		}
	})
}

// BenchmarkVerify is a signature over 1.5 kB, bare and with a prepared key.
func BenchmarkVerify(b *testing.B) {
	message := []byte(hex.EncodeToString(make([]byte, 750)))
	private, public := vManager.Key.(ed25519.PrivateKey), publicKey(vManager.Public())
	sig := ed25519.Sign(private, message)
	p, err := prepareKey(public)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			ed25519.Verify(public[:], message, sig)
		}
	})
	b.Run("prepared", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.verify(message, sig)
		}
	})
	b.Run("prepare", func(b *testing.B) {
		for b.Loop() {
			if _, err := prepareKey(public); err != nil {
				b.Fatal(err)
			}
		}
	})
}
