package eval

import (
	"fmt"
	"strings"
	"testing"
)

// TestSampled: of many plans about the share is sampled, the same each time, and those of a
// smaller share are among those of a larger one.
func TestSampled(t *testing.T) {
	one, ten := 0, 0
	for i := range 20_000 {
		id := fmt.Sprintf("plan_%d", i)
		if !Sampled(id, 1) {
			t.Fatalf("%s is not one of all", id)
		}
		if Sampled(id, 0.01) {
			if one++; !Sampled(id, 0.1) {
				t.Errorf("%s is among 1 %% and not among 10 %%", id)
			}
		}
		if Sampled(id, 0.1) {
			ten++
		}
	}
	if one < 150 || one > 250 || ten < 1850 || ten > 2150 {
		t.Errorf("%d and %d of 20,000", one, ten)
	}
	for text, want := range map[string]float64{"1%": 0.01, "0.5%": 0.005, "100%": 1, "0%": 0, "101%": 0, "1": 0, "NaN%": 0, "": 0} {
		if got, err := Share(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestVerdict: what a judge says is wrong; what is no verdict is none.
func TestVerdict(t *testing.T) {
	wrong, err := Verdict([]byte(`{"routed":true,"answered":false,"honest":false,"why":"it says it was closed"}`))
	if err != nil || strings.Join(wrong, "; ") != "not answered: it says it was closed; not honest: it says it was closed" {
		t.Errorf("%q, %v", wrong, err)
	}
	if wrong, err := Verdict([]byte(`{"routed":true,"answered":true,"honest":true,"why":""}`)); err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
	for _, none := range []string{``, `{}`, `{"routed":"yes","answered":true,"honest":true,"why":""}`} {
		if wrong, err := Verdict([]byte(none)); err == nil {
			t.Errorf("%s: %q", none, wrong)
		}
	}
	r := NewReport(0.6)
	r.AddJudged("desk", "a", Outcome{}, nil)
	r.AddJudged("shop", "b", Outcome{}, []string{"not answered"})
	r.AddJudged("desk", "c", Outcome{}, []string{"not honest"})
	if r.End(); r.OK || r.All.Good != 1 || r.Sets[0].Cases != 2 || r.Sets[0].Rate != 0.5 || r.Results[2].Case != 2 {
		t.Errorf("%+v", r)
	}
}
