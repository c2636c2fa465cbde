package policies

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/bundle"

	"aob.dev/writ/intents"
)

func build(t *testing.T, tree Tree, key *intents.Signer) []byte {
	t.Helper()
	raw, err := BuildBundle(tree, key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestBundle: we and OPA's own reader read a built bundle back unchanged, and two bundles of one
// tree are equal.
func TestBundle(t *testing.T) {
	key := signer(t, intents.RoleOperator)
	raw := build(t, Tree{Embedded(), 7}, &key)
	if !bytes.Equal(raw, build(t, Tree{Embedded(), 7}, &key)) {
		t.Error("one tree gives two bundles")
	}
	tree, err := ReadBundle(raw, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if tree.Revision != 7 || tree.Source.Digest() != Embedded().Digest() {
		t.Errorf("revision %d, digest %s", tree.Revision, tree.Source.Digest())
	}
	b, err := bundle.NewReader(bytes.NewReader(raw)).WithSkipBundleVerification(true).Read()
	if err != nil || b.Manifest.Revision != "7" || len(b.Modules) != 8 {
		t.Errorf("OPA reads revision %q, %d modules, %v", b.Manifest.Revision, len(b.Modules), err)
	}
	if _, err := BuildBundle(Tree{Embedded(), 0}, nil); err == nil {
		t.Error("a bundle without revision is built")
	}
}

// repack changes the files of a bundle and retains its signature.
func repack(t *testing.T, raw []byte, change func(Source)) []byte {
	t.Helper()
	files, err := unpack(raw)
	if err != nil {
		t.Fatal(err)
	}
	change(files)
	out, err := pack(files)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tarred(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, h := range entries {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("tar")
	}
	return buf.Bytes()
}

// TestBundleRefused: every way in which a bundle can differ from what its key signed is refused.
func TestBundleRefused(t *testing.T) {
	key, other := signer(t, intents.RoleOperator), signer(t, intents.RoleOperator)
	raw := build(t, Tree{source(tiny), 3}, &key)
	if _, err := ReadBundle(raw, key.Public()); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"another key":    build(t, Tree{source(tiny), 3}, &other),
		"unsigned":       build(t, Tree{source(tiny), 3}, nil),
		"changed module": repack(t, raw, func(s Source) { s["a.rego"] = append(s["a.rego"], "\n# x"...) }),
		"more":           repack(t, raw, func(s Source) { s["b.rego"] = []byte("package b\n") }),
		"less":           repack(t, raw, func(s Source) { s["b.rego"] = s["a.rego"]; delete(s, "a.rego") }),
		"revision":       repack(t, raw, func(s Source) { s[manifestFile] = bytes.Replace(s[manifestFile], []byte(`"3"`), []byte(`"4"`), 1) }),
		"two signatures": repack(t, raw, func(s Source) {
			s[signaturesFile] = bytes.Replace(s[signaturesFile], []byte(`["`), []byte(`["x","`), 1)
		}),
		"algorithm none": repack(t, raw, func(s Source) {
			s[signaturesFile] = bytes.Replace(s[signaturesFile], []byte(`["ey`), []byte(`["eyJhbGciOiJub25lIn0.`), 1)
		}),
		"no gzip":  []byte("PK"),
		"empty":    nil,
		"cut":      raw[:len(raw)/2],
		"upwards":  tarred(t, tar.Header{Name: "../a.rego", Typeflag: tar.TypeReg}),
		"a link":   tarred(t, tar.Header{Name: "a.rego", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}),
		"twice":    tarred(t, tar.Header{Name: "a.rego", Typeflag: tar.TypeReg}, tar.Header{Name: "/a.rego", Typeflag: tar.TypeReg}),
		"no rules": repack(t, raw, func(s Source) { delete(s, "a.rego") }),
	} {
		if tree, err := ReadBundle(bad, key.Public()); err == nil {
			t.Errorf("%s: read as revision %d", name, tree.Revision)
		}
	}
	words := repack(t, build(t, Tree{source(tiny), 3}, nil), func(s Source) {
		s[manifestFile] = bytes.Replace(s[manifestFile], []byte(`"3"`), []byte(`"v3"`), 1)
	})
	if _, err := ReadBundle(words, nil); err == nil || !strings.Contains(err.Error(), "revision") {
		t.Errorf("a revision that is no number: %v", err)
	}
}

func TestParsePublicKey(t *testing.T) {
	key := signer(t, intents.RoleOperator)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	jwk, err := json.Marshal(key.VerificationKey().ToJWK())
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{text, jwk} {
		if got, err := ParsePublicKey(raw); err != nil || !got.Equal(key.Public()) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	small, err := x509.MarshalPKIXPublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{nil, []byte("{}"), private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: small})} {
		if _, err := ParsePublicKey(raw); err == nil {
			t.Errorf("%q is a key", raw)
		}
	}
}

// TestExtend: an extension tree only tightens.
func TestExtend(t *testing.T) {
	for name, bad := range map[string]Source{
		"allows":       {"a.rego": []byte("package writ.authz\n\nallow := true\n")},
		"decides":      {"a.rego": []byte("package writ.authz\n\ndecision := {}\n")},
		"stands above": {"a.rego": []byte("package writ.ext\n\nx := 1\n")},
		"has data":     {"a.rego": []byte("package writ.ext.a\n\nx := 1\n"), "defaults/data.json": []byte("{}")},
		"is no Rego":   {"a.rego": []byte("package")},
	} {
		if _, err := Extend(source(tiny), map[string]Source{"x": bad}); err == nil {
			t.Errorf("an extension that %s is taken", name)
		}
	}
	allows := Source{"a.rego": []byte("package writ.ext.a\n\nallow := true\n\ndecision := {\"allow\": true, \"deny\": set(), \"hold\": set(), \"obligations\": set()}\n")}
	s, err := Extend(source(tiny), map[string]Source{"x": allows})
	if err != nil {
		t.Fatal(err)
	}
	tight, err := Extend(s, map[string]Source{"y": {"b.rego": []byte(ext)}})
	if err != nil {
		t.Fatal(err)
	}
	var before, after []intents.Verdict
	for _, typ := range []string{"allowed", "denied", "held", "unlisted"} {
		in := map[string]any{"intent": map[string]any{"type": typ}, "actor": map[string]any{"tenant": "acme", "user_id": "ana"}}
		for _, x := range []struct {
			source Source
			into   *[]intents.Verdict
		}{{source(tiny), &before}, {s, &after}} {
			r, err := engine(t, x.source).Decide(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			*x.into = append(*x.into, r.Verdict())
		}
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("an extension that says allow changes decisions:\n%s", d)
	}
	if tight.Digest() == s.Digest() {
		t.Error("an extension is no part of what decides")
	}
}
