package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// lintWell is an intent that nothing is wrong with.
const lintWell = `{"version":"1.0","intent":{"type":"skill.call","args":{"skill":"feed","input":{"n":1}}},
 "actor":{"user_id":"ana","tenant":"acme"},
 "constraints":{"issued_at":"2026-11-20T10:00:00.000Z","ttl_sec":120,"audience":"writ/x","idempotency_key":"k","capabilities":["skills:call"]}}`

// TestLint: each fault is found where it is.
func TestLint(t *testing.T) {
	swap := func(old, with string) string {
		if !strings.Contains(lintWell, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(lintWell, old, with, 1)
	}
	for name, x := range map[string]struct {
		intent, pointer, reason string
	}{
		"unknown member":   {swap(`"skill":`, `"skil":"x","skill":`), "/intent/args/skil", "unknown member"},
		"unknown, far":     {swap(`"version"`, `"colour":1,"version"`), "/colour", "unknown member"},
		"missing":          {swap(`"skill":"feed",`, ``), "/intent/args/skill", "is required"},
		"missing audience": {strings.Replace(swap(`"audience":"writ/x",`, ``), `"version"`, `"sig":"a..b","version"`, 1), "/constraints/audience", "is required"},
		"number":           {swap(`"n":1`, `"n":9007199254740993`), "/intent/args/input/n", "RFC 8785 would change this number"},
		"twice":            {swap(`"n":1`, `"n":1,"n":2`), "/intent/args/input/n", "member stands twice"},
		"type of a member": {swap(`"ttl_sec":120`, `"ttl_sec":"120"`), "/constraints/ttl_sec", "must be integer"},
		"pattern":          {swap(`"2026-11-20T10:00:00.000Z"`, `"yesterday"`), "/constraints/issued_at", "must be in format"},
		"type":             {swap(`"skill.call"`, `"skill.cal"`), "/intent/type", "no such type in the catalog"},
		"capability":       {swap(`"skills:call"`, `"files:read"`), "/constraints/capabilities", "needs skills:call"},
		"signature":        {swap(`"version"`, `"sig":"x","version"`), "/sig", "detached compact JWS"},
		"excluding":        {swap(`"skill":"feed"`, `"from":"f1","skill":"feed"`), "/intent/args", "has a form that is not allowed"},
		"surrogate":        {swap(`"feed"`, `"\ud800"`), "", ""},
	} {
		found, err := lint([]byte(x.intent), catalog.Builtin(), "task")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		hit := false
		for _, f := range found {
			hit = hit || (f.Pointer == x.pointer || x.pointer == "") && strings.Contains(f.Reason, x.reason)
		}
		if !hit {
			t.Errorf("%s: %+v", name, found)
		}
	}
	for name, x := range map[string]struct{ intent, role string }{"well": {lintWell, "task"}, "no role": {lintWell, ""}} {
		if found, err := lint([]byte(x.intent), catalog.Builtin(), intents.Role(x.role)); len(found) > 0 || err != nil {
			t.Errorf("%s: %+v %v", name, found, err)
		}
	}
	if found, _ := lint([]byte(lintWell), catalog.Builtin(), "manager"); len(found) != 1 || !strings.Contains(found[0].Reason, "[task workflow]") {
		t.Errorf("a manager signs it: %+v", found)
	}
	if _, err := lint([]byte(`{"version":`), catalog.Builtin(), ""); err == nil {
		t.Error("what is cut off is an intent")
	}
}

// TestLintAll: all faults are reported at once, but of numbers only the first invalid one.
func TestLintAll(t *testing.T) {
	intent := `{"version":"2","intent":{"type":"read_lines","args":{"file":"f","n":1e400,"start":0}},"actor":{"user":"ana","tenant":"acme"},"constraints":{"ttl_sec":900}}`
	found, err := lint([]byte(intent), catalog.Builtin(), "")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range found {
		have[f.Pointer] = true
		if f.ByItself != slices.Contains([]string{"/constraints/issued_at", "/constraints/audience", "/constraints/idempotency_key"}, f.Pointer) {
			t.Errorf("writ intent sign adds it or not: %+v", f)
		}
	}
	want := map[string]bool{}
	for _, p := range []string{
		"/version", "/intent/args/file", "/intent/args/file_id", "/intent/args/n", "/actor/user", "/actor/user_id",
		"/constraints/ttl_sec", "/constraints/issued_at", "/constraints/audience", "/constraints/idempotency_key",
	} {
		want[p] = true
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("(-want +got):\n%s\n%+v", d, found)
	}
}
