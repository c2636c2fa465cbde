package main

import (
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	const (
		pass  = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
		whole = `{"Action":"pass","Package":"p"}` + "\n"
		empty = `{"Action":"skip","Package":"q"}` + "\n"
		said  = `{"Action":"output","Package":"p","Test":"TestB","Output":"why\n"}` + "\n"
	)
	for name, tc := range map[string]struct {
		events, says string
		fine         bool
	}{
		"all passed":       {"go test -json\n" + pass + whole + empty, "1 passed, 0 failed, 0 skipped", true},
		"nothing ran":      {empty, "0 passed", false},
		"one failed":       {pass + said + `{"Action":"fail","Package":"p","Test":"TestB"}`, "why\n1 passed, 1 failed", false},
		"one skipped":      {pass + said + `{"Action":"skip","Package":"p","Test":"TestB"}`, "skipped: p TestB\nwhy", false},
		"does not build":   {pass + `{"Action":"build-output","Output":"undefined: x\n"}` + "\n" + `{"Action":"fail","Package":"p"}`, "undefined: x", false},
		"no events at all": {"", "0 passed", false},
	} {
		var out strings.Builder
		err := count(strings.NewReader(tc.events), &out)
		if (err == nil) != tc.fine || !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: error %v, output %q", name, err, out.String())
		}
	}
}
