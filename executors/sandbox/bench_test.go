//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// The benchmarks run the same script in a sandbox and in bare Python in turns, so
// that other work on the machine hits both, and report the ratio of the medians.

const hello = "print('hi')"

// bare is one run of the real interpreter without any sandbox.
func bare(b *testing.B, interpreter, script string, input io.Reader) time.Duration {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), interpreter, "-I", "-S", "-E", "-B", "-c", script)
	cmd.Stdin = input
	var out bytes.Buffer
	cmd.Stdout = &out
	start := time.Now()
	if err := cmd.Run(); err != nil || out.Len() == 0 {
		b.Fatalf("bare python: %v", err)
	}
	return time.Since(start)
}

func compare(b *testing.B, s *Sandbox, script, bareScript, input string) {
	b.Helper()
	p, err := findPython(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	job := func() Job {
		if input == "" {
			return Job{Script: script}
		}
		return Job{Script: script, Input: strings.NewReader(input), InputSize: int64(len(input))}
	}
	run(b, s, job()) // page cache
	var ours, theirs []time.Duration
	for b.Loop() {
		theirs = append(theirs, bare(b, p.Executable, bareScript, strings.NewReader(input)))
		if err := s.WaitWarm(b.Context()); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if res := run(b, s, job()); res.Outcome != OK {
			b.Fatalf("%s: %s", res.Outcome, res.Error)
		}
		ours = append(ours, time.Since(start))
	}
	inst, raw := median(ours), median(theirs)
	b.ReportMetric(float64(inst)/float64(raw), "x-bare")
	b.ReportMetric(float64(inst.Microseconds())/1000, "ms-sandbox")
	b.ReportMetric(float64(raw.Microseconds())/1000, "ms-bare")
	b.ReportMetric(0, "ns/op")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func BenchmarkCold(b *testing.B) {
	for _, name := range DriverNames() {
		b.Run(name, func(b *testing.B) {
			compare(b, open(b, Config{Driver: name, Workers: -1}), hello, hello, "")
		})
	}
}

func BenchmarkWarm(b *testing.B) {
	compare(b, open(b, Config{}), hello, hello, "")
}

func BenchmarkExtract8MB(b *testing.B) {
	const work = `
import json, re
rows = json.loads(text)
print(sum(1 for r in rows if re.search(r"9+$", r["name"])), sum(r["n"] for r in rows))`
	record := `{"name": "order 1234599", "n": 17, "text": "` + strings.Repeat("lorem ipsum ", 28) + `"}`
	input := "[" + strings.Repeat(record+",", 20_688) + record + "]"
	compare(b, open(b, Config{}), "text = open(input_file).read()"+work, "import sys; text = sys.stdin.read()"+work, input)
}
