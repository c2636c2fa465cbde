package intents

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
)

// addL adds the group order to the scalar of a signature (RFC 8032 §8.4).
func addL(sig string) string {
	l, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	return withScalar(sig, func(s *big.Int) *big.Int { return s.Add(s, l) })
}

func withScalar(sig string, change func(s *big.Int) *big.Int) string {
	raw := mustDecode(sig)
	little := slices.Clone(raw[32:])
	slices.Reverse(little)
	sum := change(new(big.Int).SetBytes(little)).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	return b64.EncodeToString(append(raw[:32], sum...))
}

func mustDecode(encoded string) []byte {
	raw, err := b64.DecodeString(encoded)
	if err != nil {
		panic(err)
	}
	return raw
}

// nextDigit is the base64url digit whose unused bits differ.
func nextDigit(c byte) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return digits[strings.IndexByte(digits, c)|1:][:1]
}

func second(_, b string) string { return b }

// canonicalText of a body, without sig.
func canonicalText(o object) string {
	raw, err := marshalCanonical(o)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// signedBy signs any bytes under the task's usual header.
func signedBy(o object, message func(header, payload string) []byte, opts crypto.SignerOpts) string {
	header := b64.EncodeToString([]byte(protectedHeader(TypIntent, vTask.KID)))
	sig, err := vTask.Key.Sign(nil, message(header, canonicalText(o)), opts)
	if err != nil {
		panic(err)
	}
	return withSig(o, header+".."+b64.EncodeToString(sig))
}

func signatureVectors(s *vectorSet) {
	o := envelopeOf(func(object) {})
	p := plainIntent()
	header, sig := parts(vTask, TypIntent, o)
	payload := b64.EncodeToString([]byte(canonicalText(o)))
	raw := mustDecode(sig)
	jws := object{"payload": payload, "signatures": []object{{"protected": header, "signature": sig}, {"protected": header, "signature": sig}}}
	flip := func(i int) string {
		changed := slices.Clone(raw)
		changed[i] ^= 1
		return header + ".." + b64.EncodeToString(changed)
	}
	digest := sha512.Sum512([]byte(header + "." + payload))
	for _, v := range []struct{ name, doc, raw string }{
		{"missing", "an intent without signature", canonicalText(o)},
		{"empty-object", "nothing but an object", "{}"},
		{"null", "sig is a string", withSig(o, nil)},
		{"number", "sig is a string", withSig(o, 1)},
		{"array", "one signature", withSig(o, []string{header + ".." + sig})},
		{"two-signers", "no second signature", withSig(o, []string{header + ".." + sig, header + ".." + sig})},
		{"object", "no JSON serialization of a JWS, flattened", withSig(o, object{"protected": header, "signature": sig})},
		{"json-general", "no JSON serialization of a JWS, two signatures", withSig(o, jws)},
		{"json-text", "no JSON serialization of a JWS as text", withSig(o, canonicalText(jws))},
		{"empty", "an empty string", withSig(o, "")},
		{"dots", "nothing but dots", withSig(o, "..")},
		{"header-empty", "no protected header", withSig(o, ".."+sig)},
		{"signature-empty", "no signature", withSig(o, header+"..")},
		{"one-dot", "not detached", withSig(o, header+"."+sig)},
		{"three-dots", "two dots", withSig(o, header+"..."+sig)},
		{"attached", "a payload of its own is not ours", withSig(o, header+".e30."+sig)},
		{"attached-own", "the payload twice, even if it is the same", withSig(o, header+"."+payload+"."+sig)},
		{"twice", "two signatures in one string", withSig(o, header+".."+sig+".."+sig)},
		{"cut", "63 bytes", withSig(o, header+".."+sig[:84])},
		{"long", "65 bytes", withSig(o, header+".."+b64.EncodeToString(append(slices.Clone(raw), 0)))},
		{"ed448", "114 bytes, as of Ed448", withSig(o, header+".."+b64.EncodeToString(make([]byte, 114)))},
		{"padded", "base64url without padding", withSig(o, header+".."+sig+"==")},
		{"header-padded", "base64url without padding", withSig(o, header+"=.."+sig)},
		{"trailing-bits", "unused bits must be zero", withSig(o, header+".."+sig[:85]+nextDigit(sig[85]))},
		{"line-break", "no line breaks within", withSig(o, header+".."+sig[:40]+"\n"+sig[40:])},
		{"carriage-return", "no line breaks at the end", withSig(o, header+".."+sig+"\r\n")},
		{"blank", "no white space", withSig(o, header+".. "+sig)},
		{"base64-standard", "base64url, not base64", withSig(o, header+".."+base64.RawStdEncoding.EncodeToString(raw))},
		{"raw-without-kid", "a raw signature names no key, and actor.kid does not either", withSig(o, "ed25519:"+base64.StdEncoding.EncodeToString(raw))},
		{"hex", "base64url, not hexadecimal", withSig(o, header+".."+hex.EncodeToString(raw))},
		{"zero", "64 zero bytes", withSig(o, header+".."+strings.Repeat("A", 86))},
		{"ones", "64 bytes of ones", withSig(o, header+".."+b64.EncodeToString(slices.Repeat([]byte{0xff}, 64)))},
		{"bit-of-r", "one bit of R", withSig(o, flip(0))},
		{"bit-of-s", "one bit of S", withSig(o, flip(32))},
		{"top-bit-of-r", "the sign of R", withSig(o, flip(31))},
		{"halves-swapped", "S before R", withSig(o, header+".."+b64.EncodeToString(append(slices.Clone(raw[32:]), raw[:32]...)))},
		{"plus-l", "S + L is the same signature in another spelling (RFC 8032 §8.4)", withSig(o, header+".."+addL(sig))},
		{"plus-2l", "S + 2L", withSig(o, header+".."+addL(addL(sig)))},
		{"s-bit-255", "S with its highest bit set", withSig(o, header+".."+withScalar(sig, func(x *big.Int) *big.Int { return x.SetBit(x, 255, 1) }))},
		{"s-is-l", "S = L", withSig(o, header+".."+addL(withScalar(sig, func(x *big.Int) *big.Int { return x.SetInt64(0) })))},
		{"args-changed", "another value than signed", replaced(p, `"n":1`, `"n":2`)},
		{"type-changed", "another type than signed", replaced(p, `"skill.call"`, `"skill.find"`)},
		{"user-changed", "another user than signed", replaced(p, `"ana"`, `"eve"`)},
		{"ttl-changed", "another life than signed", replaced(p, `"ttl_sec":120`, `"ttl_sec":121`)},
		{"member-added", "a member that was not signed", replaced(p, `"turn_id":"t"`, `"turn_id":"t","run_id":"r"`)},
		{"member-removed", "a signed member is gone", replaced(p, `"trace_id":"0af7651916cd43dd8448eb211c80319c",`, ``)},
		{"normalized", "ä as two characters is another text", replaced(p, "ä", "a\u0308")},
		{"number-as-text", "1 and \"1\" are two values", replaced(p, `"n":1`, `"n":"1"`)},
		{"of-another-key", "kid names one key, another signed", withSig(o, header+".."+second(parts(vManager, TypIntent, o)))},
		{"other-header", "the header of another key before this signature", withSig(o, b64.EncodeToString([]byte(protectedHeader(TypIntent, vManager.KID)))+".."+sig)},
		{"other-paper", "signed as a receipt, presented as an intent", withSig(o, header+".."+second(parts(vTask, TypReceipt, o)))},
		{"payload-only", "the payload alone was signed", signedBy(o, func(_, payload string) []byte { return []byte(payload) }, crypto.Hash(0))},
		{"payload-plain", "the payload was signed without base64url (RFC 7797)", signedBy(o, func(h, payload string) []byte { return []byte(h + "." + payload) }, crypto.Hash(0))},
		{"payload-spaced", "the text was signed as written, not its canonical form", signedBy(o, func(h, payload string) []byte {
			return []byte(h + "." + b64.EncodeToString([]byte(strings.ReplaceAll(payload, `,"`, `, "`))))
		}, crypto.Hash(0))},
		{"with-empty-sig", "an empty member sig was signed too", signedBy(o, func(h, _ string) []byte { return signingInput(h, []byte(withSig(o, ""))) }, crypto.Hash(0))},
		{"ed25519ph", "Ed25519ph is another algorithm", signedBy(o, func(string, string) []byte { return digest[:] }, crypto.SHA512)},
		{"ed25519ctx", "Ed25519ctx is another algorithm", signedBy(o, func(h, payload string) []byte { return signingInput(h, []byte(payload)) }, &ed25519.Options{Context: "writ"})},
		{"of-digest", "SHA-512 of the input was signed", signedBy(o, func(string, string) []byte { return digest[:] }, crypto.Hash(0))},
		{"audience", "an intent for another log", signed(vTask, envelopeOf(put("writ/other", "constraints", "audience")))},
		{"audience-case", "log origins differ in case", signed(vTask, envelopeOf(put(strings.ToUpper(vectorOrigin), "constraints", "audience")))},
	} {
		s.add("signature-"+v.name, v.doc, v.raw, SignatureInvalid)
	}
	s.add("signature-torsion", "R with a point of small order: without the cofactor it does not verify", withTorsion(o), SignatureInvalid)
	s.add("signature-r-not-canonical", "R = identity, not canonically encoded", withIdentity(o, nonCanonicalIdentity), SignatureInvalid)
}

// headerVectors are signed under another protected header than the one legal.
func headerVectors(s *vectorSet) {
	o := envelopeOf(func(object) {})
	kid := vTask.KID
	legal := protectedHeader(TypIntent, kid)
	header, sig := parts(vTask, TypIntent, o)
	swap := func(old, with string) string { return headed(vTask, o, replaced(legal, old, with)) }
	with := func(member string) string { return swap(`"kid"`, member+`,"kid"`) }
	own, err := marshalCanonical(object{"kty": "OKP", "crv": "Ed25519", "x": b64.EncodeToString(vStranger.Public())})
	if err != nil {
		panic(err)
	}
	for _, v := range []struct{ name, doc, raw string }{
		{"alg-none", "alg none, no signature", withSig(o, b64.EncodeToString([]byte(replaced(legal, "EdDSA", "none")))+"..")},
		{"alg-none-signed", "alg none over a good signature", swap("EdDSA", "none")},
		{"alg-none-case", "alg nOnE", swap("EdDSA", "nOnE")},
		{"alg-hs256", "HS256 with our public key as its secret", hmacked(o, replaced(legal, "EdDSA", "HS256"))},
		{"alg-hs256-signed", "HS256 over a good signature", swap("EdDSA", "HS256")},
		{"alg-hs512", "HS512: a MAC as long as a signature", swap("EdDSA", "HS512")},
		{"alg-es256", "another algorithm of 64 bytes", swap("EdDSA", "ES256")},
		{"alg-ed25519", "one name for the algorithm (RFC 9864 has another)", swap("EdDSA", "Ed25519")},
		{"alg-ed448", "another curve", swap("EdDSA", "Ed448")},
		{"alg-lower", "names are exact", swap("EdDSA", "eddsa")},
		{"alg-missing", "alg is required", swap(`"alg":"EdDSA",`, ``)},
		{"alg-array", "a string", swap(`"EdDSA"`, `["EdDSA"]`)},
		{"alg-twice", "a member stands twice", swap(`"alg":"EdDSA"`, `"alg":"EdDSA","alg":"EdDSA"`)},
		{"crit", "no extensions", with(`"crit":["exp"],"exp":1`)},
		{"crit-empty", "no extensions", with(`"crit":[]`)},
		{"b64", "no unencoded payload (RFC 7797)", with(`"b64":false,"crit":["b64"]`)},
		{"b64-true", "not even said to be encoded", with(`"b64":true,"crit":["b64"]`)},
		{"jwk", "no key of its own", headed(vStranger, o, replaced(protectedHeader(TypIntent, vStranger.KID), `"kid"`, `"jwk":`+string(own)+`,"kid"`))},
		{"jwk-of-another", "no key of its own beside a known kid", headed(vStranger, o, replaced(legal, `"kid"`, `"jwk":`+string(own)+`,"kid"`))},
		{"jku", "no keys from elsewhere", with(`"jku":"https://keys.example/jwks.json"`)},
		{"x5u", "no certificates", with(`"x5u":"https://keys.example/cert.pem"`)},
		{"x5c", "no certificates", with(`"x5c":["MIIB"]`)},
		{"x5t", "no certificates", with(`"x5t":"AA"`)},
		{"x5t-s256", "no certificates", with(`"x5t#S256":"AA"`)},
		{"cty", "no content type", with(`"cty":"json"`)},
		{"zip", "no compression", with(`"zip":"DEF"`)},
		{"nonce", "no further members", with(`"nonce":"1"`)},
		{"url", "no further members", with(`"url":"/v1/intents"`)},
		{"spaces", "one spelling: canonical", headed(vTask, o, replaced(legal, ",", ", "))},
		{"line-end", "one spelling: no line end", headed(vTask, o, legal+"\n")},
		{"order", "one spelling: members in order", headed(vTask, o, `{"kid":"`+kid+`","alg":"EdDSA","typ":"`+TypIntent+`"}`)},
		{"escaped", "one spelling: no needless escapes", swap("EdDSA", `\u0045dDSA`)},
		{"slash-escaped", "one spelling: no needless escapes", swap("+jws", `\u002bjws`)},
		{"byte-order-mark", "one spelling", headed(vTask, o, "\ufeff"+legal)},
		{"trailing", "a second value follows", headed(vTask, o, legal+"{}")},
		{"array", "an object", headed(vTask, o, "["+legal+"]")},
		{"not-json", "an object", headed(vTask, o, "EdDSA")},
		{"member-case", "names are exact", swap(`"alg"`, `"Alg"`)},
		{"no-kid", "kid is required", headed(vTask, o, `{"alg":"EdDSA","typ":"`+TypIntent+`"}`)},
		{"kid-form", "kid is a thumbprint", headed(vTask, o, protectedHeader(TypIntent, "task_2"))},
		{"kid-empty", "kid is a thumbprint", headed(vTask, o, protectedHeader(TypIntent, ""))},
		{"kid-short", "42 characters", headed(vTask, o, protectedHeader(TypIntent, kid[:42]))},
		{"kid-long", "44 characters", headed(vTask, o, protectedHeader(TypIntent, kid+"A"))},
		{"kid-padded", "base64url without padding", headed(vTask, o, protectedHeader(TypIntent, kid+"="))},
		{"kid-trailing-bits", "unused bits must be zero", headed(vTask, o, protectedHeader(TypIntent, kid[:42]+nextDigit(kid[42])))},
		{"kid-path", "a kid is no path", headed(vTask, o, protectedHeader(TypIntent, "../../../../../../../../../../etc/passwd/././"))},
		{"kid-number", "a string", swap(`"`+kid+`"`, "1")},
		{"typ-missing", "typ is required", headed(vTask, o, `{"alg":"EdDSA","kid":"`+kid+`"}`)},
		{"typ-jwt", "typ of another paper", headed(vTask, o, protectedHeader("JWT", kid))},
		{"typ-long", "the media type without application/", headed(vTask, o, protectedHeader("application/"+TypIntent, kid))},
		{"typ-upper", "names are exact", headed(vTask, o, protectedHeader(strings.ToUpper(TypIntent), kid))},
		{"typ-receipt", "typ of another paper", headed(vTask, o, protectedHeader(TypReceipt, kid))},
		{"typ-ticket", "typ of another paper", headed(vTask, o, protectedHeader(TypTicket, kid))},
		{"typ-grant", "typ of another paper", headed(vTask, o, protectedHeader(TypGrant, kid))},
		{"typ-pop", "typ of another paper", headed(vTask, o, protectedHeader(TypPoP, kid))},
		{"line-break", "one spelling: base64url has no line breaks", withSig(o, header[:8]+"\n"+header[8:]+".."+sig)},
		{"not-base64url", "characters of another alphabet", withSig(o, header[:8]+"+/"+header[8:]+".."+sig)},
	} {
		s.add("header-"+v.name, v.doc, v.raw, SignatureInvalid)
	}
}

// hmacked is the old attack: a MAC whose secret is the public key.
func hmacked(o object, header string) string {
	encoded := b64.EncodeToString([]byte(header))
	mac := hmac.New(sha256.New, vTask.Public())
	mac.Write(signingInput(encoded, []byte(canonicalText(o))))
	return withSig(o, encoded+".."+b64.EncodeToString(append(mac.Sum(nil), make([]byte, 32)...)))
}
