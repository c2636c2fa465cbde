package schemas

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// matchCompact asks both.
func matchCompact(t *testing.T, s string) bool {
	t.Helper()
	re, err := compilePattern(compactPattern)
	if err != nil {
		t.Fatal(err)
	}
	ours, ok := re.(*compact)
	if !ok {
		t.Fatal("the pattern is left to regexp")
	}
	got := ours.MatchString(s)
	if want := ours.Regexp.MatchString(s); got != want {
		t.Fatalf("%q: %v, regexp says %v", s, got, want)
	}
	return got
}

// TestCompactPattern: the pattern of grants is that of the envelope, and it matches
// what regexp matches.
func TestCompactPattern(t *testing.T) {
	source, err := files.ReadFile("envelope.schema.json")
	if err != nil || !strings.Contains(string(source), strings.ReplaceAll(compactPattern, `\`, `\\`)) {
		t.Fatalf("the envelope has another pattern: %v", err)
	}
	random := rand.New(rand.NewPCG(7515, 3))
	const characters = "aZ09-_....=+/ \n\x00\x7f\xffé"
	matched := 0
	for range 200_000 {
		b := make([]byte, random.IntN(9))
		for i := range b {
			b[i] = characters[random.IntN(8+random.IntN(len(characters)-7))]
		}
		if matchCompact(t, string(b)) {
			matched++
		}
	}
	if matched < 500 {
		t.Errorf("only %d matched", matched)
	}
}

func FuzzCompactPattern(f *testing.F) {
	for _, s := range []string{"a.b.c", "a..b", "a.b.c.d", ".a.b", "a.b.", "a.b.c\n", "é.b.c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { matchCompact(t, s) })
}
