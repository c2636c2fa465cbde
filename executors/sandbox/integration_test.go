//go:build integration && linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"os"
	"testing"

	"aob.dev/writ/executors/sandbox"
)

// TestIntegrationGVisor runs the suite in a real gVisor, which .ci/integration
// builds and puts in front of PATH.
func TestIntegrationGVisor(t *testing.T) {
	s := sandbox.OpenFor(t, sandbox.Config{Minimum: sandbox.GVisor})
	if s.Driver() != sandbox.GVisor {
		t.Fatalf("driver %s", s.Driver())
	}
	b := bait(t)
	for _, p := range probes(t) {
		t.Run(p.Name, func(t *testing.T) {
			f, err := p.Try(t.Context(), s, b)
			if err != nil || !f.Holds() {
				t.Errorf("%s: %s %v", f.Verdict, f.Detail, err)
			}
		})
	}
	for i := range 5 {
		res, err := s.Run(t.Context(), sandbox.Job{Script: fmt.Sprintf("print(%d)", i)})
		if err != nil || res.Outcome != sandbox.OK || string(res.Output) != fmt.Sprintf("%d\n", i) {
			t.Errorf("%+v %v", res, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(s.Scratch()); len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
