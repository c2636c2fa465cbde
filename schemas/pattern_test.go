package schemas

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// patternsOf collects the patterns of a document.
func patternsOf(doc any, found map[string]bool) {
	switch doc := doc.(type) {
	case map[string]any:
		for name, v := range doc {
			if text, ok := v.(string); ok && name == "pattern" {
				found[text] = true
			}
			if members, ok := v.(map[string]any); ok && name == "patternProperties" {
				for text := range members {
					found[text] = true
				}
			}
			patternsOf(v, found)
		}
	case []any:
		for _, v := range doc {
			patternsOf(v, found)
		}
	}
}

func ourPatterns(t *testing.T) []string {
	t.Helper()
	l, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, doc := range l.docs {
		patternsOf(doc.tree, found)
	}
	return slices.Sorted(maps.Keys(found))
}

// samples of texts that are near to what patterns of ours match.
var samples = []string{
	"", "a", "u_00000000", strings.Repeat("x", 43), strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("a0", 64),
	"sha256:" + strings.Repeat("0f", 32), "cas://sha256:" + strings.Repeat("0f", 32), "sha256:" + strings.Repeat("0F", 32),
	"default:sess_1:task_1:ranked", "a::: b", "a:::b", "a.b.c", "aGVhZGVy.cGF5bG9hZA.c2ln", "aGVhZGVy..c2ln", "skill:call", "skill:call:x.y",
	"2026-11-30T12:00:00.000Z", "1.0", "1000.999", "*", "plan:x", "x.a:b", "x.a.b", "x-a", "https://x", "text/plain", "30 4 * * 1", "en-GB",
	"two words", "tab\there", "line\n", "naïve", "\u200b", "\x7f", "\x00", "日本語", "\xff", "1.2.3", "01.2.3", "A_B", "bundle", "plans",
}

// TestPatternsAreRegularExpressions compares each pattern of our schemas with its regular expression on texts
// that are near to what it matches.
func TestPatternsAreRegularExpressions(t *testing.T) {
	all := ourPatterns(t)
	if len(all) < 30 {
		t.Fatalf("%d patterns", len(all))
	}
	random := rand.New(rand.NewPCG(1, 2))
	const letters = "aZ09_.-:/*+=@ \n\x00\x7fé\u2028\xff,T"
	for _, text := range all {
		re, p := regexp.MustCompile(text), MustPattern(text)
		if p.String() != text {
			t.Errorf("%s: String is %s", text, p)
		}
		for range 3000 {
			s := []byte(samples[random.IntN(len(samples))])
			for range random.IntN(3) {
				at, c := random.IntN(len(s)+1), letters[random.IntN(len(letters))]
				switch {
				case at == len(s) || random.IntN(2) == 0:
					s = slices.Insert(s, at, c)
				case random.IntN(2) == 0:
					s = slices.Delete(s, at, at+1)
				default:
					s[at] = c
				}
			}
			if got, want := p.MatchString(string(s)), re.MatchString(string(s)); got != want {
				t.Fatalf("%s on %q: %v, and the regular expression %v", text, s, got, want)
			}
		}
	}
}

// TestFrequentPatternsAreRuns makes sure that the patterns of every envelope need no regular expression.
func TestFrequentPatternsAreRuns(t *testing.T) {
	for _, text := range []string{
		`^[A-Za-z0-9_.-]{1,64}$`, `^sha256:[0-9a-f]{64}$`, `^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`, `^[a-z0-9][a-z0-9_-]{0,59}$`,
		`^(cas://sha256:[0-9a-f]{64}|sha256:[0-9a-f]{64}|[A-Za-z0-9_.-]{1,64})$`,
		`^[A-Za-z0-9_.-]{1,64}(:[A-Za-z0-9_.-]{0,64}){2}:[A-Za-z0-9_.-]{1,64}$`,
	} {
		if len(MustPattern(text).forms) == 0 {
			t.Errorf("%s is matched by a regular expression", text)
		}
	}
	for _, text := range []string{`^a*a$`, `^[ab]{1,2}[bc]$`, `a`, `^a`, `(?i)^a$`, `^a?b?a$`, `^(ab)*$`, `^a\b$`} {
		if len(MustPattern(text).forms) > 0 {
			t.Errorf("%s has to be tried", text)
		}
	}
}

// FuzzPattern compares patterns that are runs with their regular expressions.
func FuzzPattern(f *testing.F) {
	f.Add(`^[a-z]{1,3}(:[0-9]{0,2}){2}$`, "ab:1:")
	f.Add(`^(a|bc|[d-f]+)x$`, "bcx")
	f.Fuzz(func(t *testing.T, text, s string) {
		if len(text) > maxPattern {
			return
		}
		re, err := regexp.Compile(text)
		p, ours := compilePattern(text)
		if (err == nil) != (ours == nil) {
			t.Fatalf("%v, %v", err, ours)
		}
		if err == nil && re.MatchString(s) != p.MatchString(s) {
			t.Fatalf("%s on %q: the regular expression %v", text, s, re.MatchString(s))
		}
	})
}
