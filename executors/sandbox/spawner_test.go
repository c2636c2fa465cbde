//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSpawnerComesBack: sandboxes are started also after somebody killed the
// process that forks them, and those that run go on.
func TestSpawnerComesBack(t *testing.T) {
	s := open(t, Config{Workers: -1})
	once := sync.OnceFunc(func() {
		if err := s.host.offline.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	})
	text := strings.NewReader("alive")
	res := run(t, s, Job{Script: "print(open(input_file).read())", Input: readFunc(func(p []byte) (int, error) {
		once()
		return text.Read(p)
	})})
	if string(res.Output) != "alive\n" {
		t.Errorf("the run under way: %s %s", res.Outcome, res.Error)
	}
	for range 3 {
		if res := run(t, s, Job{Script: "print(1)"}); string(res.Output) != "1\n" {
			t.Errorf("%s %s", res.Outcome, res.Error)
		}
	}
}

// BenchmarkStartLargeHeap starts sandboxes of a program that holds 512 MB, which a
// fork of the program itself would have to copy page tables of, and without, in
// turns.
func BenchmarkStartLargeHeap(b *testing.B) {
	s := open(b, Config{Driver: Namespaces, Workers: -1})
	p := Profile{Limits: s.cfg.Limits, Room: s.cfg.Limits.Scratch}
	start := func() time.Duration {
		began := time.Now()
		inst, err := s.driver.Start(p)
		if err != nil {
			b.Fatal(err)
		}
		if err := inst.awaitReady(b.Context()); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		if err := inst.Close(); err != nil {
			b.Fatal(err)
		}
		return took
	}
	const size = 512 << 20
	var small, large []time.Duration
	for b.Loop() {
		small = append(small, start())
		heap, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			b.Fatal(err)
		}
		for i := 0; i < size; i += os.Getpagesize() {
			heap[i] = 1
		}
		large = append(large, start())
		if err := unix.Munmap(heap); err != nil {
			b.Fatal(err)
		}
	}
	few, many := median(small), median(large)
	b.ReportMetric(float64(many)/float64(few), "x-small")
	b.ReportMetric(float64(few.Microseconds())/1000, "ms-small")
	b.ReportMetric(float64(many.Microseconds())/1000, "ms-large")
	b.ReportMetric(0, "ns/op")
}

// TestSweepRuntimes: a runtime that nobody used for long goes, one that somebody
// uses stays.
func TestSweepRuntimes(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"python-3.9.1-unused", "python-3.9.2-held", "python-3.9.3-recent"} {
		if err := os.MkdirAll(filepath.Join(base, name, taskDir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	held, err := newScratch(filepath.Join(base, "python-3.9.2-held"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.close()
	old := time.Now().Add(-2 * idleAge)
	for _, name := range []string{"python-3.9.1-unused", "python-3.9.2-held"} {
		if err := os.Chtimes(filepath.Join(base, name, taskDir), old, old); err != nil {
			t.Fatal(err)
		}
	}
	sweepBase(base, time.Now())
	left, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || !slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), "held") }) {
		t.Errorf("left %v", left)
	}
}

// TestBusySandboxStartsNoWorkers: while runs have all processors a used worker
// is not replaced; after the last run it is.
func TestBusySandboxStartsNoWorkers(t *testing.T) {
	callers := runtime.NumCPU()
	s := open(t, Config{Workers: 1, Concurrency: callers})
	if s.busy() {
		t.Error("busy without a run")
	}
	if err := s.WaitWarm(t.Context()); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var inside sync.WaitGroup
	inside.Add(callers)
	release := make(chan struct{})
	for caller := range callers {
		text := strings.NewReader("x")
		began := sync.OnceFunc(inside.Done)
		group.Go(func() {
			res, err := s.Run(t.Context(), Job{Tenant: fmt.Sprint(caller), Script: "print(1)", Input: readFunc(func(p []byte) (int, error) {
				began()
				<-release
				return text.Read(p)
			})})
			if err != nil || res.Outcome != OK {
				t.Errorf("%v %+v", err, res)
			}
		})
	}
	inside.Wait()
	if !s.busy() {
		t.Error("not busy with a run for each processor")
	}
	// A pool of its own, so that nothing else fills it.
	l := &pool{driver: s.driver, profile: s.pool.profile, size: 1, busy: s.busy}
	if err := l.fill(t.Context()); err != nil || len(l.ready) != 0 {
		t.Errorf("%d workers, %v", len(l.ready), err)
	}
	close(release)
	group.Wait()
	if err := l.fill(t.Context()); err != nil || len(l.ready) != 1 {
		t.Errorf("%d workers, %v", len(l.ready), err)
	}
	for _, w := range l.ready {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.WaitWarm(t.Context()); err != nil {
		t.Error(err)
	}
}
