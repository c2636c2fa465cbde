package intents

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFingerprintIsCanonical compares with the marshalled document.
func TestFingerprintIsCanonical(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", "", "a", "plan_1", "A-z.9", "with space", "é", "a\"b", "a\\b", "a\nb", "<&>", "\x7f", "\xff", "\u2028", "😀", strings.Repeat("x", 300)}
	numbers := []int{0, 0, 1, 7, 300, 999_999, 1_000_000, 1_000_001, -1, 1 << 53, 1<<53 + 1}
	args := []string{
		`{}`, `{"a":1}`, `{"b":1,"a":2}`, `{ "a" : 1.0 }`, `{"a":"é\n\u000b"}`, `{"a":"\u00e9"}`, `{"a":-0}`, `{"a":1`, ``, `null`, `{"a":1,"a":2}`,
		`[1,2]`, `{"a":"<&>"}`, "{\"a\":\"\u2028\"}", `{}{}`, `{"a":9007199254740993}`, "{\"a\":\"\xff\"}",
		strings.Repeat("[", 31) + strings.Repeat("]", 31), strings.Repeat("[", 32) + strings.Repeat("]", 32),
	}
	text := func() string { return texts[rnd.IntN(len(texts))] }
	number := func() int { return numbers[rnd.IntN(len(numbers))] }
	same := map[bool]int{}
	for range 20_000 {
		in := Intent{Type: text(), Args: json.RawMessage(args[rnd.IntN(len(args))])}
		c := Context{}
		for _, to := range []*string{&c.SessionID, &c.TurnID, &c.PlanID, &c.RunID, &c.NodeID, &c.TaskID} {
			if rnd.IntN(3) == 0 {
				*to = text()
			}
		}
		for _, to := range []*int{&c.Revision, &c.Step, &c.Occurrence} {
			if rnd.IntN(3) == 0 {
				*to = number()
			}
		}
		user := text()
		got, want := Fingerprint(in, user, c), fingerprintSlowly(in, user, c)
		if got != want {
			t.Fatalf("%+v %q %+v: %s, want %s", in, user, c, got, want)
		}
		same[want != ""]++
	}
	if same[true] < 5000 || same[false] < 1000 {
		t.Errorf("%v: the orders are not worth much", same)
	}
}
