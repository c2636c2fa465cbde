package intents

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// rawIntent is an operator's intent for a raw signature of a key.
func rawIntent(key Signer, change func(o object)) object {
	return envelopeOf(func(o object) {
		o["actor"] = object{"user_id": "bob", "tenant": "default", "roles": []string{"dev"}, "kid": key.KID}
		delete(o, "context")
		change(o)
	})
}

// rawSig signs a message of any kind, and returns the 64 bytes.
func rawSig(key Signer, message string) []byte {
	return ed25519.Sign(key.Key.(ed25519.PrivateKey), []byte(message))
}

// rawly signs a body as it is: nothing is validated.
func rawly(key Signer, o object) string {
	return withSig(o, "ed25519:"+base64.StdEncoding.EncodeToString(rawSig(key, canonicalText(o))))
}

func rawVectors(s *vectorSet) {
	keep := func(object) {}
	o := rawIntent(vRaw, keep)
	p := rawly(vRaw, o)
	sig := rawSig(vRaw, canonicalText(o))
	std := base64.StdEncoding.EncodeToString
	header, jws := parts(fixedSigner(RoleOperator, "raw operator"), TypIntent, o)
	s.add("ok-raw", "a raw signature of a key whose record says raw, over the canonical bytes", p, OK)
	s.add("ok-raw-white-space", "white space is free: the canonical bytes are signed", strings.ReplaceAll(p, `,"`, ",\n  \""), OK)
	s.add("ok-raw-member-order", "members in any order", `{"version":"1.0",`+replaced(p[1:], `,"version":"1.0"`, ""), OK)
	s.add("ok-raw-printed", "the spelling of the documents", rawly(vRaw, rawIntent(vRaw, func(o object) {
		o["intent"] = object{"type": "logs.stream", "args": object{"run_id": "7f3e…", "filter": "errors", "node_id": "triage"}}
		o["trace_id"] = "abcd-1234"
		put("sha256(run_id|args)", "constraints", "idempotency_key")(o)
		put([]string{"logs:read"}, "constraints", "capabilities")(o)
	})), OK)
	s.body("ok-kid-of-header", "actor.kid beside a JWS that names the same key", put(vTask.KID, "actor", "kid"), OK)
	s.body("shape-kid-short", "actor.kid is a thumbprint", put(vTask.KID[:42], "actor", "kid"), SchemaInvalid)
	s.body("shape-kid-null", "actor.kid is a string", put(nil, "actor", "kid"), SchemaInvalid)
	s.body("signature-kid-other", "actor.kid names another key than the protected header", put(vManager.KID, "actor", "kid"), SignatureInvalid)

	jwsKey, noKID := rawIntent(vOperator, keep), rawIntent(vRaw, func(o object) { delete(lookup(o, "actor"), "kid") })
	flip := func(i int) string {
		changed := slices.Clone(sig)
		changed[i] ^= 1
		return std(changed)
	}
	for _, v := range []struct{ name, doc, raw string }{
		{"by-jws-key", "a good raw signature of a key whose record does not say raw", rawly(vOperator, jwsKey)},
		{"by-task", "a task's key makes no raw signature", rawly(vTask, envelopeOf(put(vTask.KID, "actor", "kid")))},
		{"key-signs-jws", "a good JWS of a key whose record says raw", withSig(o, header+".."+jws)},
		{"kid-missing", "a good raw signature, but no key is tried that is not named", rawly(vRaw, noKID)},
		{"kid-of-another", "actor.kid names one raw key, another key signed", withSig(o, "ed25519:"+std(rawSig(vRevokedRaw, canonicalText(o))))},
		{"unpadded", "base64 with padding", withSig(o, "ed25519:"+base64.RawStdEncoding.EncodeToString(sig))},
		{"url", "base64, not base64url", withSig(o, "ed25519:"+base64.URLEncoding.EncodeToString(slices.Repeat([]byte{0xfb, 0xff, 0xfe}, 22)[:64]))},
		{"url-unpadded", "base64, not base64url", withSig(o, "ed25519:"+jws)},
		{"trailing-bits", "unused bits must be zero", withSig(o, "ed25519:"+std(sig)[:85]+nextDigit(std(sig)[85])+"==")},
		{"line-break", "no line breaks within", withSig(o, "ed25519:"+std(sig)[:64]+"\n"+std(sig)[64:])},
		{"line-end", "no line break at the end", withSig(o, "ed25519:"+std(sig)+"\n")},
		{"padding-more", "two characters of padding", withSig(o, "ed25519:"+std(sig)+"=")},
		{"short", "63 bytes", withSig(o, "ed25519:"+std(sig[:63]))},
		{"long", "65 bytes", withSig(o, "ed25519:"+std(append(slices.Clone(sig), 0)))},
		{"empty", "no signature", withSig(o, "ed25519:")},
		{"hex", "base64, not hexadecimal", withSig(o, "ed25519:"+hex.EncodeToString(sig))},
		{"prefix-case", "ed25519 in lower case", withSig(o, "Ed25519:"+std(sig))},
		{"prefix-other", "no other algorithm", withSig(o, "ed448:"+std(sig))},
		{"no-prefix", "the prefix is required", withSig(o, std(sig))},
		{"blank", "no white space", withSig(o, "ed25519: "+std(sig))},
		{"twice", "one signature", withSig(o, "ed25519:"+std(sig)+"ed25519:"+std(sig))},
		{"with-header", "one form, not both", withSig(o, header+"..ed25519:"+std(sig))},
		{"bit-of-r", "one bit of R", withSig(o, "ed25519:"+flip(0))},
		{"bit-of-s", "one bit of S", withSig(o, "ed25519:"+flip(32))},
		{"plus-l", "S + L is the same signature in another spelling (RFC 8032 §8.4)", withSig(o, "ed25519:"+std(mustDecode(addL(b64.EncodeToString(sig)))))},
		{"zero", "64 zero bytes", withSig(o, "ed25519:"+std(make([]byte, 64)))},
		{"args-changed", "another value than signed", replaced(p, `"n":1`, `"n":2`)},
		{"trace-changed", "another trace than signed", replaced(p, "0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319d")},
		{"of-signing-input", "the signing input of a JWS was signed", withSig(o, "ed25519:"+std(rawSig(vRaw, string(signingInput(header, []byte(canonicalText(o)))))))},
		{"of-payload-encoded", "the payload was signed in base64url", withSig(o, "ed25519:"+std(rawSig(vRaw, b64.EncodeToString([]byte(canonicalText(o))))))},
		{"of-text", "the text was signed as written, not its canonical form", withSig(o, "ed25519:"+std(rawSig(vRaw, strings.ReplaceAll(canonicalText(o), `,"`, `, "`))))},
		{"of-digest", "the intent_id was signed", withSig(o, "ed25519:"+std(rawSig(vRaw, Digest([]byte(canonicalText(o))))))},
		{"with-empty-sig", "an empty member sig was signed too", withSig(o, "ed25519:"+std(rawSig(vRaw, withSig(o, ""))))},
		{"audience", "an intent for another log", rawly(vRaw, rawIntent(vRaw, put("writ/other", "constraints", "audience")))},
	} {
		s.add("raw-"+v.name, v.doc, v.raw, SignatureInvalid)
	}
	s.add("raw-key-unknown", "a kid that nobody knows", rawly(vStranger, rawIntent(vStranger, keep)), KeyUnknown)
	s.add("raw-key-revoked", "a good raw signature of a revoked key", rawly(vRevokedRaw, rawIntent(vRevokedRaw, keep)), KeyRevoked)
	s.add("raw-issued-missing", "issued_at is required", rawly(vRaw, rawIntent(vRaw, drop("constraints", "issued_at"))), SchemaInvalid)
	s.add("raw-audience-missing", "audience is required", rawly(vRaw, rawIntent(vRaw, drop("constraints", "audience"))), SchemaInvalid)
	s.add("raw-other-user", "an operator's key signs for its own user", rawly(vRaw, rawIntent(vRaw, put("eve", "actor", "user_id"))), RBACForbidden)
	s.add("raw-with-grant", "an operator's intent carries no grant", rawly(vRaw, rawIntent(vRaw, put(vectorGrant(unchanged), "actor", "grant"))), GrantInvalid)
	made := s.add("jwk-raw-manager", "a key that must not be admitted: raw is for operators", rawly(vStranger, envelopeOf(put(vStranger.KID, "actor", "kid"))), KeyUnknown)
	j := vStranger.VerificationKey().ToJWK()
	j.Raw = true
	made.Refused = []JWK{j}
}
