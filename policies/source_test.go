package policies

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/rootdir"
)

func TestReadKeepsTreeFiles(t *testing.T) {
	s, err := Read(fstest.MapFS{
		"a/b.rego":       {Data: []byte("package a")},
		"a/b_test.rego":  {Data: []byte("package a_test")},
		"a/data.yaml":    {Data: []byte("x: 1")},
		"README.md":      {Data: []byte("#")},
		".git/c.rego":    {Data: []byte("package c")},
		"a/.hidden.rego": {Data: []byte("package d")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/b.rego", "a/b_test.rego", "a/data.yaml"}, s.names()); diff != "" {
		t.Error(diff)
	}
	doc, err := s.documents()
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := doc["a"].(map[string]any); !ok || len(a) != 1 {
		t.Errorf("data documents: %v", doc)
	}
}

func TestReadRefuses(t *testing.T) {
	if _, err := Read(fstest.MapFS{"README.md": {Data: []byte("#")}}); err == nil {
		t.Error("a tree without modules is taken")
	}
	big := fstest.MapFS{"a.rego": {Data: make([]byte, maxSource+1)}}
	if _, err := Read(big); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a tree that is too large: %v", err)
	}
	if _, err := ReadDir(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a directory that is not there is taken")
	}
}

// TestSourceDigest: the digest covers paths and contents of the files that decide, and no tests.
func TestSourceDigest(t *testing.T) {
	base := Source{"a.rego": []byte("x"), "b.rego": []byte("y")}
	with := func(name, content string) Source {
		s := Source{}
		for k, v := range base {
			s[k] = v
		}
		s[name] = []byte(content)
		return s
	}
	if base.Digest() != with("a_test.rego", "z").Digest() {
		t.Error("a test changes the digest")
	}
	seen := map[string]bool{base.Digest(): true}
	for _, s := range []Source{with("a.rego", "z"), with("c.rego", ""), with("data.json", "{}"), {"a.rego": []byte("y"), "b.rego": []byte("x")}} {
		if seen[s.Digest()] {
			t.Errorf("digest of %v is another's", s.names())
		}
		seen[s.Digest()] = true
	}
}

// TestLiveReplace: a tree that does not compile or is not proved never replaces one that is in
// force.
func TestLiveReplace(t *testing.T) {
	ctx := t.Context()
	l := NewLive(engine(t, source(tiny)))
	before := l.Engine()
	proved := func(context.Context, *Engine) error { return nil }
	if _, err := l.ReplaceTree(ctx, Tree{Source: source("package x\n")}, proved); err == nil || l.Engine() != before {
		t.Errorf("a broken tree: error %v", err)
	}
	unproved := errors.New("not proved")
	if _, err := l.ReplaceTree(ctx, Tree{Source: source(tiny, ext)}, func(context.Context, *Engine) error { return unproved }); !errors.Is(err, unproved) || l.Engine() != before {
		t.Errorf("a tree that is not proved: error %v", err)
	}
	next, err := l.ReplaceTree(ctx, Tree{Source: source(tiny, ext)}, func(ctx context.Context, e *Engine) error {
		_, err := e.Decide(ctx, typed("allowed"))
		return err
	})
	if err != nil || l.Engine() != next || next.Digest() == before.Digest() {
		t.Fatalf("a good tree: error %v", err)
	}
}

// TestLiveFollow reloads from a directory: a bad tree is reported and changes
// nothing, a good one comes into force.
func TestLiveFollow(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.rego", tiny)
	s, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := NewLive(engine(t, s))
	type report struct {
		engine *Engine
		err    error
	}
	reports := make(chan report)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Feed{Dir: dir}.Follow(ctx, l, func(context.Context, *Engine) error { return nil }, func(e *Engine, err error) { reports <- report{e, err} })
	}()

	before := l.Engine()
	write("sub/b.rego", "package writ.ext.bad\n\ndeny contains 1\n")
	if r := <-reports; r.err == nil || l.Engine() != before {
		t.Errorf("a bad tree is in force: %+v", r)
	}
	write("sub/b.rego", ext)
	for r := range reports { // an editor's half-written file may be reported first
		if r.err == nil {
			if l.Engine() != r.engine || r.engine.Digest() == before.Digest() {
				t.Error("the good tree is not in force")
			}
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("follow ended with %v", err)
	}
}

// TestReadDirFollowsNoLink: a file of the machine does not become policy data, which people read.
func TestReadDirFollowsNoLink(t *testing.T) {
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret.json")
	for name, text := range map[string]string{filepath.Join(dir, "a.rego"): "package writ.authz\n", secret: `{"password": "x"}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "data.json")); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadDir(dir); !errors.Is(err, rootdir.ErrNotPlain) {
		t.Errorf("%q, %v", s["data.json"], err)
	}
}
