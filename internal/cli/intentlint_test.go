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

// TestLint: each fault is found where it is, with what to do about it.
func TestLint(t *testing.T) {
	swap := func(old, with string) string {
		if !strings.Contains(lintWell, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(lintWell, old, with, 1)
	}
	for name, x := range map[string]struct {
		intent, pointer, reason, fix string
	}{
		"unknown member":   {swap(`"skill":`, `"skil":"x","skill":`), "/intent/args/skil", "unknown member", `rename it: did you mean "skill"?`},
		"unknown, far":     {swap(`"version"`, `"colour":1,"version"`), "/colour", "unknown member", "remove it; the members here are actor, constraints, context, intent, sig, trace_id, version"},
		"missing":          {swap(`"skill":"feed",`, ``), "/intent/args/skill", "is required", `add "skill"`},
		"missing audience": {strings.Replace(swap(`"audience":"writ/x",`, ``), `"version"`, `"sig":"a..b","version"`, 1), "/constraints/audience", "is required", `by hand: "audience": "writ/<root thumbprint>`},
		"number":           {swap(`"n":1`, `"n":9007199254740993`), "/intent/args/input/n", "RFC 8785 would change this number", "correct what the reason names"},
		"twice":            {swap(`"n":1`, `"n":1,"n":2`), "/intent/args/input/n", "member stands twice", "correct what the reason names"},
		"type of a member": {swap(`"ttl_sec":120`, `"ttl_sec":"120"`), "/constraints/ttl_sec", "must be integer", "change it: it must be integer"},
		"pattern":          {swap(`"2026-11-20T10:00:00.000Z"`, `"yesterday"`), "/constraints/issued_at", "must be in format", "write it like \"20"},
		"type":             {swap(`"skill.call"`, `"skill.cal"`), "/intent/type", "no such type in the catalog", `did you mean "skill.call"?`},
		"capability":       {swap(`"skills:call"`, `"files:read"`), "/constraints/capabilities", "needs skills:call", `add "skills:call", or leave capabilities out`},
		"signature":        {swap(`"version"`, `"sig":"x","version"`), "/sig", "detached compact JWS", "sign it again"},
		"excluding":        {swap(`"skill":"feed"`, `"from":"f1","skill":"feed"`), "/intent/args", "has a form that is not allowed", "leave out members that exclude each other"},
		"surrogate":        {swap(`"feed"`, `"\ud800"`), "", "", ""},
	} {
		found, err := lint([]byte(x.intent), catalog.Builtin(), "task")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		hit := false
		for _, f := range found {
			hit = hit || (f.Pointer == x.pointer || x.pointer == "") && strings.Contains(f.Reason, x.reason) && strings.Contains(f.Fix, x.fix)
			if f.Fix == "" {
				t.Errorf("%s: %+v says not what to do", name, f)
			}
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
	if found, _ := lint([]byte(lintWell), catalog.Builtin(), "manager"); len(found) != 1 || !strings.Contains(found[0].Fix, "[task workflow]") {
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
		if _, name := cutPointer(f.Pointer); f.ByItself != slices.Contains([]string{"issued_at", "audience", "idempotency_key"}, name) {
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
