package policies

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// remark is a tree that differs from tiny by a comment.
func remark(text string) Source { return source(tiny + "\n# " + text + "\n") }

type reported struct {
	engine *Engine
	err    error
}

// follow follows a feed until the test ends.
func follow(t *testing.T, f Feed, l *Live, prove Proof) chan reported {
	t.Helper()
	reports, done := make(chan reported, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- f.Follow(ctx, l, prove, func(e *Engine, err error) { reports <- reported{e, err} }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("follow ended with %v", err)
		}
	})
	return reports
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	part := path + ".part"
	if err := errors.Join(os.WriteFile(part, content, 0o600), os.Rename(part, path)); err != nil {
		t.Fatal(err)
	}
}

// TestFollow: a changed directory comes into force, with an extension beside it; one that does
// not compile, is not proved or does more than tighten never does.
func TestFollow(t *testing.T) {
	main, night := t.TempDir(), t.TempDir()
	path := filepath.Join(main, "a.rego")
	put := func(s Source) { write(t, path, s["a.rego"]) }
	put(source(tiny))
	write(t, filepath.Join(night, "night.rego"), []byte(ext))
	f := Feed{Dir: main, Extensions: []Extension{{"night", night}}}
	e, err := f.Engine()
	if err != nil {
		t.Fatal(err)
	}
	l := NewLive(e)
	in := map[string]any{
		"intent": map[string]any{"type": "allowed"}, "actor": map[string]any{"tenant": "acme"},
		"context": map[string]any{"labels": map[string]any{"night": "yes", "duty": "notify"}},
	}
	denied := func() string {
		r, err := l.Engine().Decide(t.Context(), in)
		if err != nil || len(r.Deny) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Deny[0].Reason
	}
	if denied() != "Not at night." {
		t.Error("the extension does not deny")
	}
	unproved := errors.New("unproved")
	reports := follow(t, f, l, func(_ context.Context, e *Engine) error {
		if string(e.Source()["a.rego"]) == string(remark("unproved")["a.rego"]) {
			return unproved
		}
		return nil
	})
	put(remark("two"))
	for r := range reports {
		if r.err == nil && string(r.engine.Source()["a.rego"]) == string(remark("two")["a.rego"]) {
			break
		}
	}
	before := l.Engine()
	stays := func(what string, want error) {
		t.Helper()
		if r := <-reports; r.err == nil || want != nil && !errors.Is(r.err, want) {
			t.Errorf("%s: %v", what, r.err)
		}
		if l.Engine() != before || denied() != "Not at night." {
			t.Errorf("%s is in force", what)
		}
	}
	put(remark("unproved"))
	stays("an unproved tree", unproved)
	put(source("package writ.authz\n\nallow if {\n"))
	stays("a broken tree", nil)
	write(t, filepath.Join(night, "night.rego"), []byte("package writ.authz\n\nallow := true\n"))
	stays("an extension that allows", nil)
	if since := l.Since(); since.IsZero() || time.Since(since) > time.Hour {
		t.Errorf("in force since %s", since)
	}
	if l.Refusals() != 3 {
		t.Errorf("%d refused", l.Refusals())
	}
}
