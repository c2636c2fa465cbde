package policies

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/bundle"

	"aob.dev/writ/intents"
)

func build(t *testing.T, tree Tree) []byte {
	t.Helper()
	raw, err := BuildBundle(tree)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestBundle: we and OPA's own reader read a built bundle back unchanged, and two bundles of one
// tree are equal.
func TestBundle(t *testing.T) {
	raw := build(t, Tree{Embedded(), 7})
	if !bytes.Equal(raw, build(t, Tree{Embedded(), 7})) {
		t.Error("one tree gives two bundles")
	}
	tree, err := ReadBundle(raw)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Revision != 7 || tree.Source.Digest() != Embedded().Digest() {
		t.Errorf("revision %d, digest %s", tree.Revision, tree.Source.Digest())
	}
	b, err := bundle.NewReader(bytes.NewReader(raw)).WithSkipBundleVerification(true).Read()
	if err != nil || b.Manifest.Revision != "7" || len(b.Modules) != 10 {
		t.Errorf("OPA reads revision %q, %d modules, %v", b.Manifest.Revision, len(b.Modules), err)
	}
	if _, err := BuildBundle(Tree{Embedded(), 0}); err == nil {
		t.Error("a bundle without revision is built")
	}
}

// repack changes the files of a bundle.
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

// TestBundleRefused: what is no bundle of a tree with a revision is refused.
func TestBundleRefused(t *testing.T) {
	raw := build(t, Tree{source(tiny), 3})
	for name, bad := range map[string][]byte{
		"no gzip":  []byte("PK"),
		"empty":    nil,
		"cut":      raw[:len(raw)/2],
		"upwards":  tarred(t, tar.Header{Name: "../a.rego", Typeflag: tar.TypeReg}),
		"a link":   tarred(t, tar.Header{Name: "a.rego", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}),
		"twice":    tarred(t, tar.Header{Name: "a.rego", Typeflag: tar.TypeReg}, tar.Header{Name: "/a.rego", Typeflag: tar.TypeReg}),
		"no rules": repack(t, raw, func(s Source) { delete(s, "a.rego") }),
		"no number": repack(t, raw, func(s Source) {
			s[manifestFile] = bytes.Replace(s[manifestFile], []byte(`"3"`), []byte(`"v3"`), 1)
		}),
	} {
		if tree, err := ReadBundle(bad); err == nil {
			t.Errorf("%s: read as revision %d", name, tree.Revision)
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
