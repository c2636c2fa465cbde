package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	const (
		pass         = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
		whole        = `{"Action":"pass","Package":"p"}` + "\n"
		empty        = `{"Action":"skip","Package":"q"}` + "\n"
		failedOutput = `{"Action":"output","Package":"p","Test":"TestB","Output":"why\n"}` + "\n"
	)
	for name, tc := range map[string]struct {
		events, says string
		fine         bool
	}{
		"all passed":       {"go test -json\n" + pass + whole + empty, "1 passed, 0 failed, 0 skipped", true},
		"nothing ran":      {empty, "0 passed", false},
		"one failed":       {pass + failedOutput + `{"Action":"fail","Package":"p","Test":"TestB"}`, "why\n1 passed, 1 failed", false},
		"one skipped":      {pass + failedOutput + `{"Action":"skip","Package":"p","Test":"TestB"}`, "skipped: p TestB\nwhy", false},
		"does not build":   {pass + `{"Action":"build-output","Output":"undefined: x\n"}` + "\n" + `{"Action":"fail","Package":"p"}`, "undefined: x", false},
		"did not end":      {`{"Action":"run","Package":"p","Test":"TestD"}` + "\n" + pass + `{"Action":"fail","Package":"p"}`, "--- FAIL: TestD (did not end, in p)\n1 passed, 2 failed", false},
		"no events at all": {"", "0 passed", false},
		"a slow one":       {`{"Action":"pass","Package":"p","Test":"TestC","Elapsed":2}` + "\n" + whole, "slow     2.0 s  p TestC", true},
	} {
		var out strings.Builder
		err := count(strings.NewReader(tc.events), &out)
		if (err == nil) != tc.fine || !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: error %v, output %q", name, err, out.String())
		}
	}
}

// TestRun: a command that fails fails the count, whatever it has printed.
func TestRun(t *testing.T) {
	const pass = `{"Action":"pass","Package":"p","Test":"TestA"}`
	for code, fine := range map[string]bool{"0": true, "3": false} {
		kept := filepath.Join(t.TempDir(), "events")
		if err := run(kept, []string{"sh", "-c", "echo '" + pass + "'; exit " + code}); (err == nil) != fine {
			t.Errorf("exit %s: %v", code, err)
		}
		if raw, err := os.ReadFile(kept); err != nil || string(raw) != pass+"\n" {
			t.Errorf("kept %q, %v", raw, err)
		}
	}
	if run("", nil) == nil {
		t.Error("no command is no failure")
	}
}
