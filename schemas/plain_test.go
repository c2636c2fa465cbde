package schemas

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// agree fails where plain is sure of something that the validator says otherwise.
func agree(t *testing.T, s *Schema, v any) answer {
	t.Helper()
	a := s.plain.judge(v)
	is := no
	if s.compiled.Validate(v) == nil {
		is = yes
	}
	if a != unsure && a != is {
		doc, _ := json.Marshal(v)
		t.Fatalf("%s: plain says %d, the validator %d, of %.300s", s.id, a, is, doc)
	}
	return a
}

// TestPlainAgrees draws documents after each schema of ours, spoils them, and
// holds plain to the validator.
func TestPlainAgrees(t *testing.T) {
	l, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	plains, sure := 0, map[answer]int{}
	for _, id := range l.ids {
		s, err := Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		if s.plain == nil {
			continue
		}
		plains++
		for range 400 {
			v := drawn(rng, l, id, s.tree, 0)
			sure[agree(t, s, v)]++
		}
	}
	if plains < 30 || sure[yes] < 500 || sure[no] < 500 {
		t.Errorf("%d plain schemas of %d, answers %v: nothing was compared", plains, len(l.ids), sure)
	}
}

// drawn makes a value after a schema, and sometimes another one.
func drawn(rng *rand.Rand, l *library, id string, schema any, depth int) any {
	s, _ := schema.(map[string]any)
	if rng.IntN(40) == 0 || depth > 6 {
		return odd(rng)
	}
	if ref, ok := s["$ref"].(string); ok {
		file, fragment, _ := strings.Cut(ref, "#")
		if file != "" {
			if !strings.Contains(file, "://") {
				file = id[:strings.LastIndex(id, "/")+1] + file
			}
			id = file
		}
		at := l.docs[id].tree
		for step := range strings.SplitSeq(strings.Trim(fragment, "/"), "/") {
			if m, ok := at.(map[string]any); ok && step != "" {
				at = m[step]
			}
		}
		return drawn(rng, l, id, at, depth+1)
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if e, ok := s["enum"].([]any); ok {
		return e[rng.IntN(len(e))]
	}
	kind, _ := s["type"].(string)
	switch kind {
	case "object":
		out := map[string]any{}
		props, _ := s["properties"].(map[string]any)
		required := fmt.Sprint(s["required"])
		for name, of := range props {
			if strings.Contains(required, name) && rng.IntN(30) > 0 || rng.IntN(3) == 0 {
				out[name] = drawn(rng, l, id, of, depth+1)
			}
		}
		if rng.IntN(30) == 0 {
			out["x"] = odd(rng)
		}
		return out
	case "array":
		out := []any{}
		for range rng.IntN(4) {
			out = append(out, drawn(rng, l, id, s["items"], depth+1))
		}
		return out
	case "string":
		p, _ := s["pattern"].(string)
		switch {
		case strings.Contains(p, "[0-9a-f]{64}") && rng.IntN(2) == 0:
			return "sha256:" + strings.Repeat("0a", 32)
		case s["format"] != nil || strings.Contains(p, "[0-9]{4}"):
			return "2026-11-20T10:00:00.000Z"
		}
		return odd(rng)
	case "integer", "number":
		return json.Number(fmt.Sprint(rng.IntN(400) - 5))
	case "boolean":
		return rng.IntN(2) == 0
	}
	return odd(rng)
}

func odd(rng *rand.Rand) any {
	words := []any{
		"a", "", "a_b.c-d", strings.Repeat("x", 65), "é", "a b", "*", "a:b:c:d", "sha256:" + strings.Repeat("0", 64), "cas://sha256:" + strings.Repeat("0", 64),
		"a\n", "sha256:", nil, true, false, json.Number("1"), json.Number("0"), json.Number("-3"), json.Number("1.5"), json.Number("1e3"), json.Number("2.0"),
		json.Number("99999999999999999999"),
		[]any{},
		[]any{"a", "a"},
		[]any{map[string]any{}},
		map[string]any{},
		map[string]any{"a": "b"},
	}
	return words[rng.IntN(len(words))]
}

// TestMatcher: what is matched without the machinery is what the pattern says.
func TestMatcher(t *testing.T) {
	l, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"", "a", "A-Z_.9", strings.Repeat("x", 64), strings.Repeat("x", 65), "é", "a b", "a\n", "\n", "a|b", "(", "sha256:", "cas://x",
		"sha256:" + strings.Repeat("0", 64), "cas://sha256:" + strings.Repeat("f", 64), "sha256:" + strings.Repeat("0", 63), strings.Repeat("0", 32), "0a\x00", "a\xff",
	}
	quick := 0
	for _, pattern := range []string{
		`^[A-Za-z0-9_.-]{1,64}$`, `^sha256:[0-9a-f]{64}$`, `^(cas://sha256:[0-9a-f]{64}|sha256:[0-9a-f]{64}|[A-Za-z0-9_.-]{1,64})$`, `^[0-9a-f]{32}$`,
		`^a|b$`, `^(a|b)c[d]{1,2}$`, `^[a-z]+$`, `^[^a]{1,3}$`, `^.{1,3}$`, `[a-z]{1,3}`, `^[a-z]{1,3}\$`, `^(?i)a[b]{1,2}$`, `^[ab]{1,2}|[bc]{2,3}$`,
	} {
		c := newCompiler()
		if err := c.AddResource("x.json", map[string]any{"pattern": pattern}); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile("x.json")
		if err != nil {
			t.Fatal(err)
		}
		match := matcher(s.Pattern)
		for _, text := range texts {
			if got, want := match(text), s.Pattern.MatchString(text); got != want {
				t.Errorf("%s of %q: %v, want %v", pattern, text, got, want)
			}
		}
		if _, ok := parseRun(strings.Trim(pattern, "^$")); ok {
			quick++
		}
	}
	if quick < 3 || len(l.ids) == 0 {
		t.Errorf("%d patterns without machinery", quick)
	}
}
