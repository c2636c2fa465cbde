package intents

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// Vectors are orders with the code that every implementation must answer to
// parsing and verifying them, one failure each:
//
//	name, doc    what it is and why
//	order        the order as JSON: white space and the order of members are free; or
//	raw          its exact text; or
//	raw_base64   its exact bytes, where they are not UTF-8
//	origin       the log that verifies
//	keys         what is known about keys (JWK with our members)
//	now          when it is verified
//	expect       the code; OK comes with the intent_id
//
// They are made by this file with fixed keys: go test ./intents -run TestVectors -update.
type vector struct {
	Name     string          `json:"name"`
	Doc      string          `json:"doc"`
	Order    json.RawMessage `json:"order,omitempty"`
	Raw      string          `json:"raw,omitempty"`
	Base64   string          `json:"raw_base64,omitempty"`
	Origin   string          `json:"origin"`
	Keys     []JWK           `json:"keys"`
	Now      string          `json:"now"`
	Expect   Code            `json:"expect"`
	IntentID string          `json:"intent_id,omitempty"`
}

var update = flag.Bool("update", false, "write testdata/vectors anew")

const vectorOrigin = "writ/vectors"

var (
	vectorNow = time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC)

	vGateway    = fixedSigner(RoleGateway, "gateway")
	vManager    = fixedSigner(RoleManager, "manager")
	vTask       = fixedSigner(RoleTask, "task")
	vOperator   = fixedSigner(RoleOperator, "operator")
	vRouter     = fixedSigner(RoleRouter, "router")
	vRevoked    = fixedSigner(RoleManager, "revoked")
	vOld        = fixedSigner(RoleManager, "old")
	vOldGateway = fixedSigner(RoleGateway, "revoked gateway")
	vStranger   = fixedSigner(RoleManager, "stranger")
)

// fixedSigner derives a key from its name.
func fixedSigner(role Role, name string) Signer {
	seed := sha256.Sum256([]byte("writ vectors: " + name))
	s, err := NewSigner(role, ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		panic(err)
	}
	return s
}

// keyring is a fixed set of keys.
type keyring map[string]Key

func (r keyring) Key(kid string) (Key, error) {
	k, ok := r[kid]
	switch {
	case !ok:
		return Key{}, Refuse(KeyUnknown, "/sig", "no such key")
	case k.Revoked:
		return Key{}, Refuse(KeyRevoked, "/sig", "key is revoked")
	}
	return k, nil
}

func ring(keys ...Key) keyring {
	r := keyring{}
	for _, k := range keys {
		r[k.KID] = k
	}
	return r
}

func vectorKeys() []Key {
	operator, revoked, old, oldGateway := vOperator.VerificationKey(), vRevoked.VerificationKey(), vOld.VerificationKey(), vOldGateway.VerificationKey()
	operator.Subject, operator.Tenant = "bob", "default"
	revoked.Revoked, oldGateway.Revoked = true, true
	old.NotAfter = vectorNow.Add(-time.Second)
	return []Key{vGateway.VerificationKey(), vManager.VerificationKey(), vTask.VerificationKey(), operator, vRouter.VerificationKey(), revoked, old, oldGateway}
}

type object = map[string]any

func vectorGrant(change func(g *Grant)) string { return grantBy(vGateway, TypGrant, change) }

func grantBy(key Signer, typ string, change func(g *Grant)) string {
	g := Grant{
		Issuer: vectorOrigin, Audience: vectorOrigin, Subject: "ana", Tenant: "default", Roles: []string{"user", "auditor"},
		Act: Act{Client: "api", AMR: []string{"key"}}, Session: "s", Turn: "t", IssuedAt: vectorNow.Unix() - 60, Expires: vectorNow.Unix() + 600, ID: "g1",
	}
	change(&g)
	token, err := SignCompact(key, typ, g)
	if err != nil {
		panic(err)
	}
	return token
}

func unchanged(*Grant) {}

// order is a valid body with every member, changed.
func order(change func(o object)) object {
	o := object{
		"version":     "1.0",
		"intent":      object{"type": "skill.call", "args": object{"skill": "outlet_list", "input": object{"n": 1}}},
		"actor":       object{"user_id": "ana", "tenant": "default", "roles": []string{"user"}, "grant": vectorGrant(unchanged)},
		"constraints": object{"issued_at": "2026-11-20T10:00:00.000Z", "ttl_sec": 120, "audience": vectorOrigin, "idempotency_key": "sha256:" + strings.Repeat("0a", 32), "capabilities": []string{"skills:call"}},
		"context":     object{"session_id": "s", "turn_id": "t", "plan_id": "plan_1", "revision": 1, "step": 2, "task_id": "task_2", "labels": object{"team": "ä"}},
		"trace_id":    "0af7651916cd43dd8448eb211c80319c",
	}
	change(o)
	return o
}

func at(o object, path ...string) object {
	for _, p := range path {
		o = o[p].(object)
	}
	return o
}

// sealed signs a body as it is: nothing is validated.
func sealed(key Signer, o object) string {
	header, sig := parts(key, TypIntent, o)
	return withSig(o, header+".."+sig)
}

func parts(key Signer, typ string, o object) (header, sig string) {
	payload, err := marshalCanonical(o)
	if err != nil {
		panic(err)
	}
	header, sig, err = sign(key, typ, payload)
	if err != nil {
		panic(err)
	}
	return header, sig
}

func withSig(o object, sig any) string {
	o = maps.Clone(o)
	o["sig"] = sig
	raw, err := marshalCanonical(o)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// headed signs under a protected header of any text.
func headed(key Signer, o object, header string) string {
	payload, err := marshalCanonical(o)
	if err != nil {
		panic(err)
	}
	encoded := b64.EncodeToString([]byte(header))
	priv := key.Key.(ed25519.PrivateKey)
	return withSig(o, encoded+".."+b64.EncodeToString(ed25519.Sign(priv, []byte(encoded+"."+b64.EncodeToString(payload)))))
}

// plain is the unchanged order, signed by the task.
func plainOrder() string { return sealed(vTask, order(func(object) {})) }

func replaced(s, old, with string) string {
	if !strings.Contains(s, old) {
		panic("no " + old)
	}
	return strings.Replace(s, old, with, 1)
}

// addL adds the group order to the scalar of a signature (RFC 8032 §8.4).
func addL(sig string) string {
	raw, err := b64.DecodeString(sig)
	if err != nil {
		panic(err)
	}
	l, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	little := slices.Clone(raw[32:])
	slices.Reverse(little)
	sum := new(big.Int).Add(new(big.Int).SetBytes(little), l).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	return b64.EncodeToString(append(raw[:32], sum...))
}

// vectors makes all of them.
func vectors() []vector {
	var out []vector
	add := func(name, doc, raw string, expect Code) {
		v := vector{Name: name, Doc: doc, Origin: vectorOrigin, Now: vectorNow.Format(time.RFC3339), Expect: expect}
		for _, k := range vectorKeys() {
			v.Keys = append(v.Keys, k.ToJWK())
		}
		canonical, err := Canonical([]byte(raw))
		switch {
		case err == nil && string(canonical) == raw:
			v.Order = canonical
		case utf8.ValidString(raw):
			v.Raw = raw
		default:
			v.Base64 = base64.StdEncoding.EncodeToString([]byte(raw))
		}
		if expect == OK {
			u, err := Parse([]byte(raw))
			if err != nil {
				panic(name + ": " + err.Error())
			}
			v.IntentID = u.ID()
		}
		out = append(out, v)
	}
	shape := func(name, doc string, change func(o object), expect Code) {
		add(name, doc, sealed(vTask, order(change)), expect)
	}
	acceptedVectors(add, shape)
	encodingVectors(add)
	shapeVectors(shape)
	signatureVectors(add)
	grantVectors(shape)
	return out
}

type (
	adder  = func(name, doc, raw string, expect Code)
	shaper = func(name, doc string, change func(o object), expect Code)
)

func acceptedVectors(add adder, shape shaper) {
	add("ok-full", "every member, canonical", plainOrder(), OK)
	add("ok-white-space", "white space is free: the canonical bytes are signed", strings.ReplaceAll(plainOrder(), `,"`, ",\n  \""), OK)
	add("ok-escapes", "any spelling of a string is the same string", replaced(plainOrder(), "ä", `\u00e4`), OK)
	add("ok-number-spelling", "1.0 is 1: numbers are compared by value", replaced(plainOrder(), `"n":1`, `"n":1.0`), OK)
	add("ok-number-exponent", "10e-1 is 1", replaced(plainOrder(), `"n":1`, `"n":10e-1`), OK)
	shape("ok-minimal", "without the optional members", func(o object) {
		delete(o, "trace_id")
		o["context"] = object{"session_id": "s", "turn_id": "t"}
		delete(at(o, "actor"), "roles")
		delete(at(o, "constraints"), "capabilities")
	}, OK)
	shape("ok-surrogate-order", "members sort by UTF-16 code units: U+1F600 before U+FB33", func(o object) {
		at(o, "intent")["args"] = object{"\U0001F600": 1, "\uFB33": 2, "a": 3}
	}, OK)
	shape("ok-standing-grant", "a grant for a plan, in an order of that plan", func(o object) {
		at(o, "actor")["grant"] = vectorGrant(func(g *Grant) { g.For = "plan:plan_1" })
	}, OK)
	add("ok-operator", "an operator's order carries no grant; its actor is the key's", sealed(vOperator, order(func(o object) {
		o["actor"] = object{"user_id": "bob", "tenant": "default"}
		o["intent"] = object{"type": "order.resolve", "args": object{}}
		delete(o, "context")
	})), OK)
	shape("ok-grant-leeway", "5 seconds of leeway after expiry", func(o object) {
		at(o, "actor")["grant"] = vectorGrant(func(g *Grant) { g.Expires = vectorNow.Unix() - 5 })
	}, OK)
}

func encodingVectors(add adder) {
	p := plainOrder()
	for _, v := range []struct{ name, doc, raw string }{
		{"json-empty", "nothing", ""},
		{"json-cut", "the end is missing", p[:len(p)-1]},
		{"json-two-values", "a second value follows", p + "{}"},
		{"json-byte-order-mark", "a byte order mark is no JSON", "\ufeff" + p},
		{"json-array", "not an object", "[" + p + "]"},
		{"json-string", "not an object", `"order"`},
		{"json-comment", "JSON has no comments", p + "/**/"},
		{"json-single-quotes", "JSON has no single quotes", replaced(p, `"version"`, `'version'`)},
		{"utf8-latin1", "the text is not UTF-8", replaced(p, "ä", "\xe4")},
		{"utf8-overlong", "an overlong encoding", replaced(p, "ä", "\xc1\xa4")},
		{"utf8-surrogate", "a surrogate encoded in UTF-8 (CESU-8)", replaced(p, "ä", "\xed\xa0\xbd\xed\xb8\x80")},
		{"surrogate-high-alone", "a lone high surrogate is no character", replaced(p, "ä", `\ud83d`)},
		{"surrogate-low-alone", "a lone low surrogate is no character", replaced(p, "ä", `\ude00`)},
		{"duplicate-member", "a name stands twice, the same value", replaced(p, `"version":"1.0"`, `"version":"1.0","version":"1.0"`)},
		{"duplicate-in-args", "a name stands twice within args", replaced(p, `"n":1`, `"n":1,"n":2`)},
		{"duplicate-escaped", "a name stands twice in two spellings", replaced(p, `"n":1`, `"n":1,"\u006e":1`)},
		{"duplicate-sig", "two signatures", replaced(p, `"sig":`, `"sig":"","sig":`)},
		{"number-beyond-double", "2^53+1 is no double: RFC 8785 would sign another number", replaced(p, `"n":1`, `"n":9007199254740993`)},
		{"number-minus-zero", "RFC 8785 would write 0", replaced(p, `"n":1`, `"n":-0`)},
		{"number-underflow", "RFC 8785 would write 0", replaced(p, `"n":1`, `"n":1e-400`)},
		{"number-overflow", "larger than any double", replaced(p, `"n":1`, `"n":1e400`)},
		{"number-too-precise", "more digits than a double has", replaced(p, `"n":1`, `"n":0.10000000000000000555`)},
		{"number-leading-zero", "JSON has no leading zeros", replaced(p, `"n":1`, `"n":01`)},
		{"number-nan", "JSON has no NaN", replaced(p, `"n":1`, `"n":NaN`)},
	} {
		add(v.name, v.doc, v.raw, SchemaInvalid)
	}
	add("size-received", "one byte more than 49152, in white space", p+strings.Repeat(" ", MaxSize-len(p)+1), PayloadTooLarge)
	grown := strings.Repeat("1e20,", 6000)
	add("size-canonical", "small as received, larger than 49152 bytes in canonical form", replaced(p, `"n":1`, `"n":[`+grown+`1]`), PayloadTooLarge)
	add("depth", "33 levels", replaced(p, `"n":1`, `"n":`+strings.Repeat("[", 29)+strings.Repeat("]", 29)), PayloadTooLarge)
}

func shapeVectors(shape shaper) {
	for _, v := range []struct {
		name, doc string
		change    func(o object)
	}{
		{"version", "an unknown version", func(o object) { o["version"] = "1.1" }},
		{"version-missing", "version is required", func(o object) { delete(o, "version") }},
		{"unknown-member", "the envelope is closed", func(o object) { o["note"] = "x" }},
		{"unknown-member-case", "names are exact: Version is not version", func(o object) { o["Version"] = "1.0" }},
		{"unknown-intent-member", "intent is closed", func(o object) { at(o, "intent")["version"] = 1 }},
		{"unknown-context-member", "context is closed", func(o object) { at(o, "context")["user"] = "x" }},
		{"unknown-actor-member", "actor is closed", func(o object) { at(o, "actor")["admin"] = true }},
		{"unknown-constraint", "constraints are closed", func(o object) { at(o, "constraints")["nbf"] = 1 }},
		{"intent-missing", "intent is required", func(o object) { delete(o, "intent") }},
		{"args-missing", "args is required", func(o object) { delete(at(o, "intent"), "args") }},
		{"args-array", "args is an object", func(o object) { at(o, "intent")["args"] = []int{} }},
		{"args-null", "args is an object", func(o object) { at(o, "intent")["args"] = nil }},
		{"type-blank", "a type is an identifier", func(o object) { at(o, "intent")["type"] = "skill call" }},
		{"actor-missing", "actor is required", func(o object) { delete(o, "actor") }},
		{"user-email", "identifiers have no @", func(o object) { at(o, "actor")["user_id"] = "ana@example.org" }},
		{"user-long", "identifiers have at most 64 characters", func(o object) { at(o, "actor")["user_id"] = strings.Repeat("a", 65) }},
		{"tenant-newline", "no line break hides at the end", func(o object) { at(o, "actor")["tenant"] = "default\n" }},
		{"roles-string", "roles is an array", func(o object) { at(o, "actor")["roles"] = "user" }},
		{"grant-not-jws", "a grant is a compact JWS", func(o object) { at(o, "actor")["grant"] = "letmein" }},
		{"ttl-zero", "at least one second", func(o object) { at(o, "constraints")["ttl_sec"] = 0 }},
		{"ttl-301", "at most 300 seconds", func(o object) { at(o, "constraints")["ttl_sec"] = 301 }},
		{"ttl-fraction", "whole seconds", func(o object) { at(o, "constraints")["ttl_sec"] = 1.5 }},
		{"ttl-string", "a number", func(o object) { at(o, "constraints")["ttl_sec"] = "120" }},
		{"issued-no-milliseconds", "one spelling of time: with milliseconds", func(o object) { at(o, "constraints")["issued_at"] = "2026-11-20T10:00:00Z" }},
		{"issued-offset", "one spelling of time: UTC as Z", func(o object) { at(o, "constraints")["issued_at"] = "2026-11-20T11:00:00.000+01:00" }},
		{"issued-no-such-day", "30 February", func(o object) { at(o, "constraints")["issued_at"] = "2026-02-30T10:00:00.000Z" }},
		{"issued-leap-second", "no leap seconds", func(o object) { at(o, "constraints")["issued_at"] = "2026-12-31T23:59:60.000Z" }},
		{"key-missing", "idempotency_key is required", func(o object) { delete(at(o, "constraints"), "idempotency_key") }},
		{"key-upper-hex", "a digest is lower case", func(o object) {
			at(o, "constraints")["idempotency_key"] = "sha256:" + strings.Repeat("0A", 32)
		}},
		{"audience-empty", "an order is for one log", func(o object) { at(o, "constraints")["audience"] = "" }},
		{"capability-form", "area:verb[:resource]", func(o object) { at(o, "constraints")["capabilities"] = []string{"skills"} }},
		{"step-zero", "steps count from 1", func(o object) { at(o, "context")["step"] = 0 }},
		{"occurrence-zero", "absent for the first, so that equal orders have one spelling", func(o object) { at(o, "context")["occurrence"] = 0 }},
		{"cause-form", "cause is an intent_id", func(o object) { at(o, "context")["cause"] = "step 1" }},
		{"labels-number", "labels are strings", func(o object) { at(o, "context")["labels"] = object{"team": 1} }},
		{"context-null", "absent or an object", func(o object) { o["context"] = nil }},
		{"trace-upper", "32 lower-case hexadecimal digits", func(o object) { o["trace_id"] = strings.Repeat("A", 32) }},
	} {
		shape("shape-"+v.name, v.doc, v.change, SchemaInvalid)
	}
}

func signatureVectors(add adder) {
	o := order(func(object) {})
	p := plainOrder()
	header, sig := parts(vTask, TypIntent, o)
	kid := vTask.KID
	legal := protectedHeader(TypIntent, kid)
	other := strings.Repeat("A", 86)
	for _, v := range []struct {
		name, doc, raw string
	}{
		{"sig-missing", "an order without signature", sealedWithout(o)},
		{"sig-null", "sig is a string", withSig(o, nil)},
		{"sig-object", "no JSON serialization of a JWS", withSig(o, object{"protected": header, "signature": sig})},
		{"sig-one-dot", "not detached", withSig(o, header+"."+sig)},
		{"sig-attached", "a payload of its own is not ours", withSig(o, header+".e30."+sig)},
		{"sig-cut", "63 bytes", withSig(o, header+".."+sig[:84])},
		{"sig-padded", "base64url without padding", withSig(o, header+".."+sig+"==")},
		{"sig-trailing-bits", "unused bits must be zero", withSig(o, header+".."+sig[:85]+string(nextDigit(sig[85])))},
		{"sig-line-break", "no line breaks within", withSig(o, header+".."+sig[:40]+"\n"+sig[40:])},
		{"sig-zero", "not a signature", withSig(o, header+".."+other)},
		{"sig-plus-l", "S + L is the same signature in another spelling (RFC 8032 §8.4)", withSig(o, header+".."+addL(sig))},
		{"sig-args-changed", "another value than signed", replaced(p, `"n":1`, `"n":2`)},
		{"sig-type-changed", "another type than signed", replaced(p, `"skill.call"`, `"skill.find"`)},
		{"sig-member-added", "a member that was not signed", replaced(p, `"turn_id":"t"`, `"turn_id":"t","run_id":"r"`)},
		{"sig-member-removed", "a signed member is gone", replaced(p, `"trace_id":"0af7651916cd43dd8448eb211c80319c",`, ``)},
		{"sig-of-another-key", "kid names one key, another signed", withSig(o, header+".."+second(parts(vManager, TypIntent, o)))},
		{"sig-other-paper", "signed as a receipt, presented as an order", withSig(o, header+".."+second(parts(vTask, TypReceipt, o)))},
		{"header-receipt", "typ of another paper", headed(vTask, o, protectedHeader(TypReceipt, kid))},
		{"header-alg-none", "alg none", withSig(o, b64.EncodeToString([]byte(replaced(legal, "EdDSA", "none")))+"..")},
		{"header-alg-hs256", "an algorithm that takes our public key for a secret", headed(vTask, o, replaced(legal, "EdDSA", "HS256"))},
		{"header-alg-ed25519", "one name for the algorithm", headed(vTask, o, replaced(legal, "EdDSA", "Ed25519"))},
		{"header-extra", "no further members", headed(vTask, o, replaced(legal, `"kid"`, `"crit":["b64"],"kid"`))},
		{"header-jwk", "no key of its own", headed(vStranger, o, replaced(protectedHeader(TypIntent, vStranger.KID), `"kid"`, `"jwk":{"kty":"OKP"},"kid"`))},
		{"header-spaces", "one spelling: canonical", headed(vTask, o, replaced(legal, ",", ", "))},
		{"header-order", "one spelling: members in order", headed(vTask, o, `{"kid":"`+kid+`","alg":"EdDSA","typ":"`+TypIntent+`"}`)},
		{"header-no-kid", "kid is required", headed(vTask, o, `{"alg":"EdDSA","typ":"`+TypIntent+`"}`)},
		{"header-kid-form", "kid is a thumbprint", headed(vTask, o, protectedHeader(TypIntent, "task_2"))},
		{"header-line-break", "one spelling: base64url has no line breaks", withSig(o, header[:8]+"\n"+header[8:]+".."+sig)},
		{"audience", "an order for another log", sealed(vTask, order(func(o object) { at(o, "constraints")["audience"] = "writ/other" }))},
	} {
		add("signature-"+v.name, v.doc, v.raw, SignatureInvalid)
	}
	add("key-unknown", "a good signature by a key that nobody knows", sealed(vStranger, o), KeyUnknown)
	add("key-revoked", "a good signature by a revoked key", sealed(vRevoked, o), KeyRevoked)
	add("key-expired", "a good signature by a key past its not_after", sealed(vOld, o), KeyRevoked)
}

func second(_, b string) string { return b }

func sealedWithout(o object) string {
	raw, err := marshalCanonical(o)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// nextDigit is the base64url digit whose unused bits differ.
func nextDigit(c byte) byte {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return digits[strings.IndexByte(digits, c)|1]
}

func grantVectors(shape shaper) {
	with := func(change func(g *Grant)) func(o object) {
		return func(o object) { at(o, "actor")["grant"] = vectorGrant(change) }
	}
	token := func(t string) func(o object) { return func(o object) { at(o, "actor")["grant"] = t } }
	now := vectorNow.Unix()
	head, rest, _ := strings.Cut(vectorGrant(unchanged), ".")
	_, tail, _ := strings.Cut(vectorGrant(func(g *Grant) { g.Subject = "eve" }), ".")
	_, tailSig, _ := strings.Cut(rest, ".")
	evePayload, _, _ := strings.Cut(tail, ".")
	for _, v := range []struct {
		name, doc string
		change    func(o object)
		expect    Code
	}{
		{"missing", "only operators need none", func(o object) { delete(at(o, "actor"), "grant") }, GrantInvalid},
		{"expired", "past exp and leeway", with(func(g *Grant) { g.Expires = now - 6 }), GrantInvalid},
		{"not-yet", "from the future", with(func(g *Grant) { g.IssuedAt, g.Expires = now+6, now+600 }), GrantInvalid},
		{"long", "longer than 15 minutes", with(func(g *Grant) { g.Expires = g.IssuedAt + 901 }), GrantInvalid},
		{"backwards", "ends before it begins", with(func(g *Grant) { g.Expires = g.IssuedAt - 1 }), GrantInvalid},
		{"audience", "for another log", with(func(g *Grant) { g.Audience = "writ/other" }), GrantInvalid},
		{"issuer", "from another log", with(func(g *Grant) { g.Issuer = "writ/other" }), GrantInvalid},
		{"no-subject", "names nobody", with(func(g *Grant) { g.Subject = "" }), GrantInvalid},
		{"no-id", "has no jti", with(func(g *Grant) { g.ID = "" }), GrantInvalid},
		{"session", "for another session", with(func(g *Grant) { g.Session = "s2" }), GrantInvalid},
		{"turn", "for another turn", with(func(g *Grant) { g.Turn = "t2" }), GrantInvalid},
		{"other-plan", "a standing grant for another plan", with(func(g *Grant) { g.For = "plan:plan_2" }), GrantInvalid},
		{"by-manager", "only gateways sign grants", token(grantBy(vManager, TypGrant, unchanged)), GrantInvalid},
		{"by-task", "a task cannot grant itself anything", token(grantBy(vTask, TypGrant, unchanged)), GrantInvalid},
		{"by-stranger", "signed by an unknown key", token(grantBy(vStranger, TypGrant, unchanged)), GrantInvalid},
		{"by-revoked", "signed by a revoked gateway", token(grantBy(vOldGateway, TypGrant, unchanged)), GrantInvalid},
		{"other-paper", "a ticket is no grant", token(grantBy(vGateway, TypTicket, unchanged)), GrantInvalid},
		{"payload-swapped", "claims of another grant under this signature", token(head + "." + evePayload + "." + tailSig), GrantInvalid},
		{"other-user", "the actor is not whom the grant names", with(func(g *Grant) { g.Subject = "eve" }), RBACForbidden},
		{"other-tenant", "the actor's tenant is not the grant's", with(func(g *Grant) { g.Tenant = "acme" }), RBACForbidden},
		{"more-roles", "the actor claims a role that the grant does not give", func(o object) { at(o, "actor")["roles"] = []string{"user", "admin"} }, RBACForbidden},
	} {
		shape("grant-"+v.name, v.doc, v.change, v.expect)
	}
}

const vectorFolder = "testdata/vectors"

func TestVectorsAreCurrent(t *testing.T) {
	want := vectors()
	names := map[string]bool{}
	for _, v := range want {
		if names[v.Name] {
			t.Fatalf("%s stands twice", v.Name)
		}
		names[v.Name] = true
		raw, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, '\n')
		path := filepath.Join(vectorFolder, v.Name+".json")
		if *update {
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%s is not what the generator makes (%v): run with -update", path, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(vectorFolder, "*.json"))
	if err != nil || len(files) != len(want) {
		t.Errorf("%d files, %d vectors, %v", len(files), len(want), err)
	}
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(vectorFolder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	failing := 0
	for _, path := range files {
		var v vector
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := unmarshalStrict(text, &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if v.Expect != OK {
			failing++
		}
		t.Run(v.Name, func(t *testing.T) { v.run(t) })
	}
	if len(files) < 60 || failing*5 < len(files)*4 {
		t.Errorf("%d vectors, %d of them fail: want 60 or more, four in five failing", len(files), failing)
	}
}

// run tries every way in which the order may arrive.
func (v vector) run(t *testing.T) {
	t.Helper()
	now, err := time.Parse(time.RFC3339, v.Now)
	if err != nil {
		t.Fatal(err)
	}
	keys := keyring{}
	for _, j := range v.Keys {
		k, err := j.ToKey()
		if err != nil {
			t.Fatal(err)
		}
		keys[k.KID] = k
	}
	spellings := [][]byte{[]byte(v.Raw)}
	if v.Base64 != "" {
		raw, err := base64.StdEncoding.DecodeString(v.Base64)
		if err != nil {
			t.Fatal(err)
		}
		spellings = [][]byte{raw}
	}
	if v.Order != nil {
		var compact bytes.Buffer
		if err := json.Compact(&compact, v.Order); err != nil {
			t.Fatal(err)
		}
		canonical, err := Canonical(v.Order)
		if err != nil {
			t.Fatal(err)
		}
		spellings = [][]byte{v.Order, compact.Bytes(), canonical}
	}
	for _, raw := range spellings {
		id, err := verifyRaw(raw, Verifier{Keys: keys, Origin: v.Origin, Now: now})
		if CodeOf(err) != v.Expect {
			t.Errorf("%v, want %s", err, v.Expect)
		}
		if err == nil && id != v.IntentID {
			t.Errorf("intent_id %s, want %s", id, v.IntentID)
		}
	}
}

func verifyRaw(raw []byte, v Verifier) (id string, err error) {
	u, err := Parse(raw)
	if err != nil {
		return "", err
	}
	if again, err := Parse(u.Bytes()); err != nil || again.ID() != u.ID() {
		return "", errors.New("Bytes do not parse to the same order")
	}
	e, err := u.Verify(v)
	if err != nil {
		return "", err
	}
	if opened, err := e.Sealed().Open(); err != nil || cmp.Diff(opened.Bytes(), u.Bytes()) != "" {
		return "", errors.New("Sealed does not open to the same order")
	}
	return e.ID(), nil
}
