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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// vector is an envelope with the code that every implementation must return when
// parsing and verifying it, one failure each. docs/spec/envelope.md says what
// the members mean.
//
// Vectors are made by the files vectors_*_test.go with fixed keys:
// go test ./intents -run TestVectors -update.
type vector struct {
	Name     string          `json:"name"`
	Doc      string          `json:"doc"`
	Intent   json.RawMessage `json:"envelope,omitempty"`
	Raw      string          `json:"raw,omitempty"`
	Base64   string          `json:"raw_base64,omitempty"`
	Refused  []JWK           `json:"refused_keys,omitempty"`
	Now      string          `json:"now"`
	Expect   Code            `json:"expect"`
	IntentID string          `json:"intent_id,omitempty"`
}

// How many vectors there are at least, and how many of 100 must fail.
const (
	leastVectors = 300
	leastFailing = 80
)

var update = flag.Bool("update", false, "write testdata/vectors anew")

var (
	vectorNow = time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC)

	vRoot       = fixedSigner(RoleRoot, "root")
	vGateway    = fixedSigner(RoleGateway, "gateway")
	vManager    = fixedSigner(RoleManager, "manager")
	vTask       = fixedSigner(RoleTask, "task")
	vOperator   = fixedSigner(RoleOperator, "operator")
	vRaw        = rawSigner("raw operator")
	vRouter     = fixedSigner(RoleRouter, "router")
	vRevokedRaw = rawSigner("revoked raw operator")
	vRevoked    = fixedSigner(RoleManager, "revoked")
	vOld        = fixedSigner(RoleManager, "old")
	vLast       = fixedSigner(RoleManager, "last moment")
	vOldGateway = fixedSigner(RoleGateway, "revoked gateway")
	vEndGateway = fixedSigner(RoleGateway, "expired gateway")
	vStranger   = fixedSigner(RoleManager, "stranger")

	vectorOrigin = "writ/" + vRoot.KID
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

// rawSigner is the key of an operator, for raw signatures.
func rawSigner(name string) Signer {
	s := fixedSigner(RoleOperator, name)
	s.Raw = true
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
	key := func(s Signer, change func(k *Key)) Key {
		k := s.VerificationKey()
		change(&k)
		return k
	}
	plain, revoked := func(*Key) {}, func(k *Key) { k.Revoked = true }
	until := func(at time.Time) func(k *Key) { return func(k *Key) { k.NotAfter = at } }
	return []Key{
		key(vGateway, plain), key(vManager, plain), key(vTask, plain), key(vRouter, plain),
		key(vOperator, func(k *Key) { k.Subject, k.Tenant = "bob", "default" }),
		key(vRaw, func(k *Key) { k.Subject, k.Tenant = "bob", "default" }),
		key(vRevokedRaw, func(k *Key) { k.Subject, k.Tenant, k.Revoked = "bob", "default", true }),
		key(vRevoked, revoked), key(vOldGateway, revoked),
		key(vOld, until(vectorNow.Add(-time.Second))), key(vLast, until(vectorNow)), key(vEndGateway, until(vectorNow.Add(-time.Second))),
	}
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

// envelopeOf is a valid body with every member, changed.
func envelopeOf(change func(o object)) object {
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

func lookup(o object, path ...string) object {
	for _, p := range path {
		o = o[p].(object)
	}
	return o
}

// signed signs a body as it is: nothing is validated.
func signed(key Signer, o object) string {
	header, sig := parts(key, TypIntent, o)
	return withSig(o, header+".."+sig)
}

func parts(key Signer, typ string, o object) (header, sig string) {
	payload, err := marshalCanonical(o)
	if err != nil {
		panic(err)
	}
	input, sig, err := sign(key, typ, payload)
	if err != nil {
		panic(err)
	}
	return headerOf(input), sig
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

// plainIntent is the unchanged envelope, signed by the task.
func plainIntent() string { return signed(vTask, envelopeOf(func(object) {})) }

func replaced(s, old, with string) string {
	if !strings.Contains(s, old) {
		panic("no " + old)
	}
	return strings.Replace(s, old, with, 1)
}

// vectorSet collects vectors as they are made.
type vectorSet struct{ list []*vector }

// add makes a vector of received bytes.
func (s *vectorSet) add(name, doc, raw string, expect Code) *vector {
	v := &vector{Name: name, Doc: doc, Now: vectorNow.Format(time.RFC3339), Expect: expect}
	canonical, err := Canonical([]byte(raw))
	switch {
	case err == nil && string(canonical) == raw && len(raw) < MaxSize/2: // indenting it must not make it too large
		v.Intent = canonical
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
	s.list = append(s.list, v)
	return v
}

// body makes a vector of the usual body, changed and then signed by the task.
func (s *vectorSet) body(name, doc string, change func(o object), expect Code) *vector {
	return s.add(name, doc, signed(vTask, envelopeOf(change)), expect)
}

// put changes one member, drop removes it.
func put(v any, path ...string) func(o object) {
	return func(o object) { lookup(o, path[:len(path)-1]...)[path[len(path)-1]] = v }
}

func drop(path ...string) func(o object) {
	return func(o object) { delete(lookup(o, path[:len(path)-1]...), path[len(path)-1]) }
}

func vectors() []*vector {
	var s vectorSet
	acceptedVectors(&s)
	jsonVectors(&s)
	numberVectors(&s)
	limitVectors(&s)
	shapeVectors(&s)
	boundVectors(&s)
	signatureVectors(&s)
	headerVectors(&s)
	rawVectors(&s)
	keyVectors(&s)
	weakKeyVectors(&s)
	grantVectors(&s)
	grantTokenVectors(&s)
	actorVectors(&s)
	return s.list
}

const (
	vectorFolder  = "testdata/vectors"
	vectorKeyFile = "testdata/keys.json"
)

// vectorFiles are all files that the generator makes, by path.
func vectorFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	add := func(path string, v any) {
		raw, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if files[path] != nil {
			t.Fatalf("%s is made twice", path)
		}
		files[path] = append(raw, '\n')
	}
	set := JWKS{Origin: vectorOrigin, Version: 1}
	for _, k := range vectorKeys() {
		set.Keys = append(set.Keys, k.ToJWK())
	}
	add(vectorKeyFile, set)
	for _, v := range vectors() {
		add(filepath.Join(vectorFolder, v.Name+".json"), v)
	}
	return files
}

func TestVectorsAreCurrent(t *testing.T) {
	want := vectorFiles(t)
	for path, raw := range want {
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
	if err != nil || len(files) != len(want)-1 {
		t.Errorf("%d files, %d vectors, %v", len(files), len(want)-1, err)
	}
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(vectorFolder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var set JWKS
	text, err := os.ReadFile(vectorKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := UnmarshalStrict(text, &set); err != nil {
		t.Fatal(err)
	}
	keys, err := set.Admit()
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
		if err := UnmarshalStrict(text, &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if v.Expect != OK {
			failing++
		}
		t.Run(v.Name, func(t *testing.T) { v.run(t, set.Origin, keys) })
	}
	if len(files) < leastVectors || failing*100 < len(files)*leastFailing {
		t.Errorf("%d vectors, %d of them fail: want %d or more, %d %% failing", len(files), failing, leastVectors, leastFailing)
	}
}

// run tries every way in which the envelope may arrive.
func (v *vector) run(t *testing.T, origin string, keys keyring) {
	t.Helper()
	now, err := time.Parse(time.RFC3339, v.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range v.Refused {
		if _, err := j.ToKey(); err == nil {
			t.Errorf("key %s %s is admitted", j.KID, j.X)
		}
	}
	spellings := [][]byte{[]byte(v.Raw)}
	if v.Base64 != "" {
		raw, err := base64.StdEncoding.DecodeString(v.Base64)
		if err != nil {
			t.Fatal(err)
		}
		spellings = [][]byte{raw}
	}
	if v.Intent != nil {
		var compact bytes.Buffer
		if err := json.Compact(&compact, v.Intent); err != nil {
			t.Fatal(err)
		}
		canonical, err := Canonical(v.Intent)
		if err != nil {
			t.Fatal(err)
		}
		spellings = [][]byte{v.Intent, compact.Bytes(), canonical}
	}
	for _, raw := range spellings {
		id, err := verifyRaw(raw, Verifier{Keys: keys, Origin: origin, Now: now})
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
		return "", errors.New("Bytes do not parse to the same intent")
	}
	e, err := u.Verify(v)
	if err != nil {
		return "", err
	}
	if opened, err := e.Signed().Open(); err != nil || cmp.Diff(opened.Bytes(), u.Bytes()) != "" {
		return "", errors.New("Signed does not open to the same intent")
	}
	switch { // stage 4
	case e.IssuedAt().After(v.Now.Add(Leeway)):
		return "", Refuse(NotYetValid, "/constraints/issued_at", "")
	case v.Now.After(e.IssuedAt().Add(e.TTL()).Add(Leeway)):
		return "", Refuse(ExpiredTTL, "/constraints/ttl_sec", "")
	}
	return e.ID(), nil
}
