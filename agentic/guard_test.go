package agentic

import (
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// secrets are texts that no user may see, with a piece by which each is recognized.
func secrets() map[string]string {
	out := map[string]string{
		"goroutine 7 [running]:\nmain.main()\n\t/srv/x.go:7 +0x1d\n\n":                                             "x.go",
		"Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in f\n    g()\nValueError: no\n\n":    "app.py",
		"TypeError\n    at Object.run (/srv/tool.js:10:5)":                                                         "tool.js",
		"-----BEGIN EC PRIVATE KEY-----\n" + strings.Repeat("MHcCAQEEIabc\n", 40) + "-----END EC PRIVATE KEY-----": "MHcCAQ",
		"eyJ" + strings.Repeat("hbGciOiJF", 60) + ".eyJzdWIi.sig_sig":                                              "hbGciOiJF",
		"sk-proj-0123456789abcdefghij":                                                                             "0123456789abcdef",
		"ghp_0123456789abcdefghij":                                                                                 "0123456789abcdef",
		"writ_" + strings.Repeat("0aB-x_9", 7):                                                                     "0aB-x_9",
		"AKIAIOSFODNN7EXAMPLE":                                                                                     "IOSFODNN7",
		"invoice\u202efdp.exe":                                                                                     "\u202e",
		"Authorization: Bearer abcdef0123456789abcdef":                                                             "abcdef0123456789",
	}
	for _, c := range []intents.Code{intents.RBACForbidden, intents.KeyRole} {
		out["it failed with "+string(c)] = string(c)
	}
	return out
}

// However a text is cut into pieces, the shown text is the same and contains no code, trace or
// key, also when the client disconnected in between.
func TestGuardAtEveryByte(t *testing.T) {
	all := secrets()
	if len(all) < 10 {
		t.Fatalf("only %d secrets", len(all))
	}
	before, after := "Ten are open; é "+strings.Repeat("a word ", 40), " — and that is all."
	for secret, known := range all {
		text := before + secret + after
		want := guarded(text)
		if strings.Contains(want, known) || !strings.HasPrefix(want, before) || !strings.HasSuffix(want, after) && strings.HasSuffix(secret, "\n\n") {
			t.Fatalf("%q stays, or more than it is gone: %q", known, want)
		}
		for i := range text {
			if i < len(before)-70 && i%5 != 0 {
				continue // far ahead of the secret, in words that are alike
			}
			var got strings.Builder
			s := &tokens{now: time.Now, show: func(d bus.ContentData) {
				got.WriteString(d.Text)
				if strings.Contains(got.String(), known) || strings.Contains(d.Text, "\uFFFD") || !strings.HasPrefix(want, got.String()) {
					t.Fatalf("%q cut at %d: shown %q", secret, i, got.String())
				}
			}}
			s.take(model.Event{Text: text[:i]})
			s.flush(false)
			s.take(model.Event{Text: text[i:]})
			s.flush(false)
			s.flush(true)
			if got.String() != want {
				t.Fatalf("%q cut at %d: %q, want %q", secret, i, got.String(), want)
			}
		}
		var got strings.Builder
		s := &tokens{now: time.Now, show: func(d bus.ContentData) { got.WriteString(d.Text) }}
		for i := range len(text) {
			s.take(model.Event{Text: text[i : i+1]})
			s.flush(false)
			if strings.Contains(got.String(), known) || !strings.HasPrefix(want, got.String()) {
				t.Fatalf("%q byte by byte: shown %q", secret, got.String())
			}
		}
		if s.flush(true); got.String() != want {
			t.Fatalf("%q byte by byte: %q, want %q", secret, got.String(), want)
		}
	}
}

// A text without codes and keys stays unchanged.
func TestGuardLeaves(t *testing.T) {
	for _, text := range []string{
		"The order is CANCELLED, says INTERNAL audit.", "sk-learn and pk_user are names", "Bearer of bad news",
		"    at 10:30 we meet (room 5:1)", "x_RATE_LIMITED_y", "eyJ is a prefix", "panic not", "goroutine 7 [running]", "",
	} {
		if got := guarded(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, c := range intents.Codes() {
		if got := guarded("It failed: " + string(c.Code)); strings.Contains(string(c.Code), "_") && got != "It failed: "+c.Title {
			t.Errorf("%s became %q", c.Code, got)
		}
	}
	if got := guarded("It said RBAC_FORBIDDEN."); got != "It said the actor lacks the capability." {
		t.Errorf("%q", got)
	}
}
