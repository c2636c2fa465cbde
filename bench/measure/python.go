package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/executors/sandbox"
)

// Names of the rows of bench python. What is bare is python3 -I -S -E -B.
const (
	pythonHello   = "print('hi')"
	pythonCallers = 4
	pythonRows    = 20_688 // of some 400 bytes: 8 MB
)

// pythonExtract is the work on 8 MB; how the text gets there comes before it.
const pythonExtract = `
import json, re
rows = json.loads(text)
print(sum(1 for r in rows if re.search(r"9+$", r["name"])), sum(r["n"] for r in rows))`

// python measures scripts in the sandbox beside the same in bare Python, in
// turns: print('hi') in a new sandbox (cold) and in a waiting one (warm), an
// extraction from 8 MB of JSON, and how many of the first four callers get done,
// in new sandboxes and in those that writ up has.
func python(ctx context.Context, o Options) ([]Row, error) {
	return within(func(dir string) ([]Row, error) {
		// Sandboxes run as another user, which must be able to enter it.
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // G302: it holds a copy of Python
			return nil, err
		}
		var b pythonBench
		cold, err := sandbox.Open(ctx, sandbox.Config{Dir: dir, Workers: -1, Concurrency: pythonCallers})
		if err != nil {
			return nil, err
		}
		defer cold.Close()
		warm, err := sandbox.Open(ctx, sandbox.Config{Dir: dir, Workers: 2})
		if err != nil {
			return nil, err
		}
		defer warm.Close()
		if b.interpreter, err = realPython(ctx, dir); err != nil {
			return nil, err
		}
		return b.measure(ctx, cold, warm, o)
	})
}

// realPython is the interpreter behind a shim, which would be measured too; where
// there is no python3, the one of the sandboxes outside them.
func realPython(ctx context.Context, dir string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))").Output()
	if errors.Is(err, exec.ErrNotFound) {
		p, err := sandbox.Prepare(ctx, sandbox.Config{Dir: dir})
		return p.Bare, err
	}
	return []string{strings.TrimSpace(string(out))}, err
}

type pythonBench struct{ interpreter []string }

func (b pythonBench) measure(ctx context.Context, cold, warm *sandbox.Sandbox, o Options) ([]Row, error) {
	record := `{"name": "order 1234599", "n": 17, "text": "` + strings.Repeat("lorem ipsum ", 28) + `"}`
	input := "[" + strings.Repeat(record+",", pythonRows) + record + "]"
	hello := func() sandbox.Job { return sandbox.Job{Script: pythonHello} }
	extract := func() sandbox.Job {
		return sandbox.Job{Script: "text = open(input_file).read()" + pythonExtract, Input: strings.NewReader(input), InputSize: int64(len(input))}
	}
	var rows []Row
	for _, m := range []struct {
		name   string
		runner *sandbox.Sandbox
		warm   bool
		job    func() sandbox.Job
		script string
		input  string
	}{
		{"cold", cold, false, hello, pythonHello, ""},
		{"warm", warm, true, hello, pythonHello, ""},
		{"extract_8mb", warm, true, extract, "import sys; text = sys.stdin.read()" + pythonExtract, input},
	} {
		took, err := inTurns(ctx, o.Time, func() (float64, error) {
			return b.bare(ctx, m.script, m.input)
		}, func() (float64, error) {
			if m.warm {
				if err := m.runner.WaitWarm(ctx); err != nil {
					return 0, err
				}
			}
			return sandboxed(ctx, m.runner, m.job())
		})
		if err != nil {
			return nil, err
		}
		theirs, ours := took[0], took[1]
		n := int64(len(ours))
		rows = append(rows, newRow(m.name+"_p50", median(ours), median(theirs), "ms", n),
			newRow(m.name+"_p95", high(ours), high(theirs), "ms", n))
	}
	for _, m := range []struct {
		name   string
		runner *sandbox.Sandbox
	}{{"throughput", cold}, {"throughput_pool", warm}} {
		row, err := b.throughput(ctx, fmt.Sprintf("%s_%d", m.name, pythonCallers), m.runner, o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// high is the 95th percentile of values that median has sorted.
func high(values []float64) float64 { return values[len(values)*95/100] }

// bare is one run without any sandbox, in milliseconds.
func (b pythonBench) bare(ctx context.Context, script, input string) (float64, error) {
	args := slices.Concat(b.interpreter[1:], []string{"-I", "-S", "-E", "-B", "-c", script})
	cmd := exec.CommandContext(ctx, b.interpreter[0], args...) //nolint:gosec // G204: found in PATH
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout = &out
	start := time.Now()
	err := cmd.Run()
	if err == nil && out.Len() == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, fmt.Errorf("bare python: %w", err)
	}
	return sinceMS(start), nil
}

// sandboxed is one run in the sandbox, in milliseconds.
func sandboxed(ctx context.Context, runner *sandbox.Sandbox, job sandbox.Job) (float64, error) {
	start := time.Now()
	res, err := runner.Run(ctx, job)
	if err == nil && res.Outcome != sandbox.OK {
		err = fmt.Errorf("script: %s: %s", res.Outcome, res.Error)
	}
	return sinceMS(start), err
}

// throughput is how many print('hi') a second the callers get done together.
func (b pythonBench) throughput(ctx context.Context, name string, runner *sandbox.Sandbox, o Options) (Row, error) {
	bare := &lane{callers: pythonCallers, do: func(ctx context.Context, _ int) error {
		_, err := b.bare(ctx, pythonHello, "")
		return err
	}}
	ours := &lane{callers: pythonCallers, do: func(ctx context.Context, caller int) error {
		// Each its own, since no tenant gets all places.
		_, err := sandboxed(ctx, runner, sandbox.Job{Tenant: strconv.Itoa(caller), Script: pythonHello})
		return err
	}}
	err := race(ctx, o.Time, bare, ours)
	return newRow(name, ours.rate(), bare.rate(), "1/s", ours.n), err
}
