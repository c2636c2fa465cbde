package intents

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"filippo.io/edwards25519"
)

func keyVectors(s *vectorSet) {
	o := envelopeOf(func(object) {})
	s.add("key-unknown", "a good signature by a key that nobody knows", signed(vStranger, o), KeyUnknown)
	s.add("key-root", "the root signs no intents: it is in no key set", signed(vRoot, o), KeyUnknown)
	s.add("key-revoked", "a good signature by a revoked key", signed(vRevoked, o), KeyRevoked)
	s.add("key-expired", "a good signature by a key past its not_after", signed(vOld, o), KeyRevoked)
	s.add("key-expired-gateway", "a good signature by a gateway's key past its not_after", signed(vEndGateway, o), KeyRevoked)

	jwk := func(change func(j *JWK)) JWK {
		j := vStranger.VerificationKey().ToJWK()
		change(&j)
		return j
	}
	x := b64.EncodeToString(vStranger.Public())
	for _, v := range []struct {
		name, doc string
		change    func(j *JWK)
	}{
		{"kty", "EC is not OKP", func(j *JWK) { j.Kty = "EC" }},
		{"kty-oct", "a secret is no public key", func(j *JWK) { j.Kty = "oct" }},
		{"kty-case", "names are exact", func(j *JWK) { j.Kty = "okp" }},
		{"crv", "X25519 is for key agreement", func(j *JWK) { j.Crv = "X25519" }},
		{"crv-ed448", "another curve", func(j *JWK) { j.Crv = "Ed448" }},
		{"crv-missing", "crv is required", func(j *JWK) { j.Crv = "" }},
		{"alg", "another algorithm", func(j *JWK) { j.Alg = "HS256" }},
		{"alg-missing", "alg is required", func(j *JWK) { j.Alg = "" }},
		{"use", "a key for encryption", func(j *JWK) { j.Use = "enc" }},
		{"use-missing", "use is required", func(j *JWK) { j.Use = "" }},
		{"x-missing", "x is required", func(j *JWK) { j.X = "" }},
		{"x-padded", "base64url without padding", func(j *JWK) { j.X = x + "=" }},
		{"x-line-break", "base64url without line breaks", func(j *JWK) { j.X = x[:20] + "\n" + x[20:] }},
		{"x-trailing-bits", "unused bits must be zero", func(j *JWK) { j.X = x[:42] + nextDigit(x[42]) }},
		{"x-short", "31 bytes", func(j *JWK) { j.X = b64.EncodeToString(vStranger.Public()[:31]) }},
		{"x-long", "33 bytes", func(j *JWK) { j.X = b64.EncodeToString(append(slices.Clone(vStranger.Public()), 0)) }},
		{"kid-other", "a kid that is another key's thumbprint", func(j *JWK) { j.X = b64.EncodeToString(vManager.Public()) }},
		{"kid-name", "a kid that is no thumbprint", func(j *JWK) { j.KID = "stranger" }},
		{"not-after", "not_after is RFC 3339", func(j *JWK) { j.NotAfter = "tomorrow" }},
	} {
		made := s.add("jwk-"+v.name, "a key that must not be admitted: "+v.doc, signed(vStranger, o), KeyUnknown)
		made.Refused = []JWK{jwk(v.change)}
	}
}

const (
	nonCanonicalIdentity = "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
	orderEight           = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
)

// weakKeyVectors carry keys that crypto/ed25519 takes and that are no good. Where
// it can be done the signature is one that verifies without any private key.
func weakKeyVectors(s *vectorSet) {
	for _, name := range slices.Sorted(maps.Keys(weakKeys)) {
		pub := unhexed(weakKeys[name])
		s.weak("weak-key-"+slug(name), "a key that must not be admitted: "+name, pub, nil)
	}
	p, err := new(edwards25519.Point).SetBytes(vStranger.Public())
	if err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(maps.Keys(weakKeys)) {
		if name == "order 1" || !strings.HasPrefix(name, "order") || strings.Contains(name, "sign") {
			continue
		}
		torsion, err := new(edwards25519.Point).SetBytes(unhexed(weakKeys[name]))
		if err != nil {
			panic(err)
		}
		mixed := new(edwards25519.Point).Add(p, torsion).Bytes()
		s.weak("mixed-key-"+slug(name), "a key that must not be admitted: a good key plus a point of "+name, mixed, secretOf(vStranger))
	}
}

func (s *vectorSet) weak(name, doc string, pub ed25519.PublicKey, secret *edwards25519.Scalar) {
	key := Key{KID: Thumbprint(pub), Role: RoleManager, Public: pub}
	o := envelopeOf(func(object) {})
	header := b64.EncodeToString([]byte(protectedHeader(TypIntent, key.KID)))
	sig := forge(pub, secret, signingInput(header, []byte(canonicalText(o))))
	if sig == nil { // no private key, no forgery: the signature is another key's
		sig = mustDecode(second(parts(vTask, TypIntent, o)))
	} else {
		doc += "; the signature verifies"
	}
	v := s.add(name, doc, withSig(o, header+".."+b64.EncodeToString(sig)), KeyUnknown)
	v.Refused = []JWK{key.ToJWK()}
}

func slug(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		if r == ' ' || r == '+' {
			return '-'
		}
		return -1
	}, strings.ToLower(name)), "-")
}

func unhexed(s string) []byte {
	raw, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return raw
}

// secretOf is the scalar of a fixed signer.
func secretOf(key Signer) *edwards25519.Scalar {
	h := sha512.Sum512(key.Key.(ed25519.PrivateKey).Seed())
	a, err := new(edwards25519.Scalar).SetBytesWithClamping(h[:32])
	if err != nil {
		panic(err)
	}
	return a
}

func uniform(parts ...[]byte) *edwards25519.Scalar {
	h := sha512.Sum512(slices.Concat(parts...))
	k, err := new(edwards25519.Scalar).SetUniformBytes(h[:])
	if err != nil {
		panic(err)
	}
	return k
}

// forge tries nonces until what is left of the torsion vanishes: S = r + k·a,
// R = r·B. nil: no nonce does it, since the key is no such point.
func forge(pub ed25519.PublicKey, secret *edwards25519.Scalar, message []byte) []byte {
	if secret == nil {
		secret = edwards25519.NewScalar()
	}
	for i := range 256 {
		r := uniform([]byte("writ vectors: nonce"), binary.BigEndian.AppendUint32(nil, uint32(i)))
		bigR := new(edwards25519.Point).ScalarBaseMult(r).Bytes()
		k := uniform(bigR, pub, message)
		sig := slices.Concat(bigR, new(edwards25519.Scalar).MultiplyAdd(k, secret, r).Bytes())
		if ed25519.Verify(pub, message, sig) {
			return sig
		}
	}
	return nil
}

// withTorsion signs with R moved by a point of order 8: a verifier that
// multiplies by the cofactor would accept it.
func withTorsion(o object) string {
	torsion, err := new(edwards25519.Point).SetBytes(unhexed(orderEight))
	if err != nil {
		panic(err)
	}
	r := uniform([]byte("writ vectors: torsion"))
	return withCommitment(o, new(edwards25519.Point).Add(new(edwards25519.Point).ScalarBaseMult(r), torsion).Bytes(), r)
}

// withIdentity signs with the nonce zero and R as given.
func withIdentity(o object, encoded string) string {
	return withCommitment(o, unhexed(encoded), edwards25519.NewScalar())
}

func withCommitment(o object, bigR []byte, r *edwards25519.Scalar) string {
	header := b64.EncodeToString([]byte(protectedHeader(TypIntent, vTask.KID)))
	message := signingInput(header, []byte(canonicalText(o)))
	k := uniform(bigR, vTask.Public(), message)
	sig := slices.Concat(bigR, new(edwards25519.Scalar).MultiplyAdd(k, secretOf(vTask), r).Bytes())
	return withSig(o, header+".."+b64.EncodeToString(sig))
}
