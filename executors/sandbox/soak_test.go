//go:build integration && linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIntegrationSoak makes 2,000 runs back to back, four at a time and of all
// endings, after which nothing may be left: no process, mount, file, descriptor.
func TestIntegrationSoak(t *testing.T) {
	const runs, callers = 2000, 4
	jobs := []Job{
		{Script: "print(1)"},
		{Script: "raise ValueError"},
		{Script: "open('kept', 'w').write('x')"},
		{Script: "import os; os.abort()"},
		{Script: "import time; time.clock_settime(time.CLOCK_REALTIME, 0)"},
		{Script: "while True: print('x' * 1000)", Limits: Limits{Output: 1000}},
	}
	swept(t)
	before := count(t, testBase)
	s, err := Open(t.Context(), config(t, Config{Concurrency: callers}))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := caller; i < runs; i += callers {
				job := jobs[i%len(jobs)]
				job.Input, job.Tenant = strings.NewReader("data"), fmt.Sprint("tenant", caller)
				if _, err := s.Run(t.Context(), job); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, count(t, testBase)); diff != "" {
		t.Error(diff)
	}
}
