//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testBase keeps the runtime for all tests of this process.
var testBase string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if os.Getenv(dockerVar) != "" {
		fmt.Fprintln(os.Stderr, enterDocker())
		return 1
	}
	if os.Getenv(helperVar) != "" {
		return helper()
	}
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	testBase = dir
	return m.Run()
}

// testPython is found once: a shim in PATH takes longer than most tests.
var testPython = sync.OnceValues(func() (string, error) {
	p, err := findPython(context.Background(), "")
	return p.Executable, err
})

// config completes cfg for a test.
func config(t testing.TB, cfg Config) Config {
	t.Helper()
	interpreter, err := testPython()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dir, cfg.Python = testBase, interpreter
	return cfg
}

// open is a Sandbox that ends with the test.
func open(t testing.TB, cfg Config) *Sandbox {
	t.Helper()
	s, err := Open(t.Context(), config(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// availableNow is the answer of available, which does not change.
var availableNow []string

// available are the drivers whose canary holds here. At least one must.
func available(t *testing.T) []string {
	t.Helper()
	if availableNow != nil {
		return availableNow
	}
	for _, name := range DriverNames() {
		s, err := Open(t.Context(), config(t, Config{Drivers: []string{name}, Workers: -1}))
		if err != nil {
			t.Logf("not on this machine: %v", err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		availableNow = append(availableNow, name)
	}
	if availableNow == nil {
		t.Fatal("no driver holds on this machine")
	}
	return availableNow
}

func run(t testing.TB, s *Sandbox, job Job) Result {
	t.Helper()
	res, err := s.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRunResult(t *testing.T) {
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{Drivers: []string{name}})
			script := "import json, re, sys\nwith open(input_file) as f: print(sum(json.load(f)))"
			hash := fmt.Sprintf("%x", sha256.Sum256([]byte(script)))
			for range 5 { // warm, then cold once the pool is drained
				res := run(t, s, Job{Script: script, Input: strings.NewReader("[1, 2, 3]"), InputSize: 9})
				want := Result{
					Outcome: OK, Output: []byte("6\n"), Driver: name, Python: s.Python(), InputBytes: 9,
					ScriptSHA256: hash,
				}
				if res.Duration <= 0 || res.CPU <= 0 {
					t.Errorf("incomplete account: %+v", res)
				}
				res.Duration, res.CPU, res.Warm = 0, 0, false
				if diff := cmp.Diff(want, res); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestRunWithoutInput(t *testing.T) {
	s := open(t, Config{})
	if res := run(t, s, Job{Script: "print(input_file)"}); string(res.Output) != "None\n" {
		t.Errorf("got %q, %s", res.Output, res.Error)
	}
}

func TestStandardLibrary(t *testing.T) {
	const script = `
import array, base64, bisect, collections, csv, dataclasses, datetime, decimal, difflib, enum, fractions
import functools, gzip, hashlib, heapq, html, io, itertools, json, lzma, math, operator, os, pathlib, pickle
import random, re, shutil, sqlite3, statistics, string, struct, tempfile, textwrap, threading, time, typing
import unicodedata, urllib.parse, uuid, xml.etree.ElementTree, zipfile, zlib, mmap, concurrent.futures, logging
@dataclasses.dataclass
class P:
    x: int
assert pickle.loads(pickle.dumps(P(1))) == P(1)
db = sqlite3.connect(":memory:")
assert db.execute("select 1 + 1").fetchone() == (2,)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert sum(pool.map(abs, range(-5, 0))) == 15
with tempfile.TemporaryDirectory() as d:
    p = pathlib.Path(d, "a.txt")
    p.write_text("grüße")
    shutil.copy2(p, "/tmp/b.txt")
    with zipfile.ZipFile("c.zip", "w") as z:
        z.write("/tmp/b.txt")
assert hashlib.sha256(b"").hexdigest().startswith("e3b0c442")
print("grüße", uuid.uuid4().version, time.tzname[0])
`
	res := run(t, open(t, Config{}), Job{Script: script})
	if res.Outcome != OK || string(res.Output) != "grüße 4 UTC\n" {
		t.Errorf("%s: %q\n%s", res.Outcome, res.Output, res.Error)
	}
}

func TestTraceback(t *testing.T) {
	s := open(t, Config{})
	for _, tt := range []struct{ name, script, want string }{
		{
			"nested", "import json\ndef load(x):\n    return json.loads(x)\n\nload('{')\n",
			"Traceback (most recent call last):\n" +
				"  File \"script.py\", line 5, in <module>\n    load('{')\n" +
				"  File \"script.py\", line 3, in load\n    return json.loads(x)\n" +
				"JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
		},
		{
			"syntax", "x = 1\ny = = 2\n",
			"Traceback (most recent call last):\n  File \"script.py\", line 2\n    y = = 2\nSyntaxError: invalid syntax",
		},
		{"exit text", "raise SystemExit('no rows')", "SystemExit: no rows"},
		{"hard exit", "import os; os._exit(9)", "exit status 9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := run(t, s, Job{Script: tt.script})
			if res.Outcome != ScriptError || res.ExitCode == 0 {
				t.Errorf("%s, exit %d", res.Outcome, res.ExitCode)
			}
			if diff := cmp.Diff(tt.want, res.Error); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRunCanceled(t *testing.T) {
	s := open(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	// The input blocks until the box is up, which is when the run is ended.
	_, err := s.Run(ctx, Job{Script: "while True: pass", Input: readFunc(func([]byte) (int, error) {
		cancel()
		return 0, io.EOF
	})})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestRunInputFails(t *testing.T) {
	broken := errors.New("disk on fire")
	s := open(t, Config{})
	_, err := s.Run(t.Context(), Job{Script: "print(1)", Input: readFunc(func([]byte) (int, error) { return 0, broken })})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	big := io.LimitReader(zeros{}, 3<<20)
	_, err = s.Run(t.Context(), Job{Script: "print(1)", Input: big, Limits: Limits{Scratch: 1 << 20}})
	if !errors.Is(err, ErrInputSize) {
		t.Errorf("too large: got %v", err)
	}
	if _, err := s.Run(t.Context(), Job{Input: big, InputSize: maxInput + 1}); !errors.Is(err, ErrInputSize) {
		t.Errorf("far too large: got %v", err)
	}
	if _, err := s.Run(t.Context(), Job{Script: strings.Repeat("#", maxScript+1)}); !errors.Is(err, ErrScript) {
		t.Errorf("script: got %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestRunAfterClose(t *testing.T) {
	s := open(t, Config{Workers: -1})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), Job{Script: "print(1)"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestRunsAreApart(t *testing.T) {
	s := open(t, Config{Concurrency: 4})
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			res, err := s.Run(t.Context(), Job{
				Script: "import os; print(sorted(os.listdir()), open(input_file).read()); open('mine', 'w').close()",
				Input:  strings.NewReader(fmt.Sprint(i)),
			})
			if want := fmt.Sprintf("['input'] %d\n", i); err != nil || string(res.Output) != want {
				t.Errorf("got %q, %s, %v; want %q", res.Output, res.Error, err, want)
			}
		})
	}
	group.Wait()
}

func TestOpenWithoutPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Open(t.Context(), Config{Dir: testBase})
	if err == nil || !strings.Contains(err.Error(), "install CPython") {
		t.Errorf("got %v", err)
	}
}

func TestDriversAccepted(t *testing.T) {
	for _, tt := range []struct {
		named   []string
		minimum string
		want    []string // nil: refused
	}{
		{nil, "", DriverNames()[1:]},
		{nil, GVisor, []string{GVisor}},
		{[]string{GVisor, Namespaces}, "", []string{GVisor, Namespaces}},
		{nil, Rootful, []string{Namespaces, Rootful}},
		{[]string{Landlock, Namespaces}, "", []string{Landlock, Namespaces}},
		{[]string{Landlock, Namespaces}, Namespaces, []string{Namespaces}},
		{[]string{Landlock}, Rootful, nil},
		{[]string{"magic"}, "", nil},
		{nil, "magic", nil},
	} {
		c, err := Config{Drivers: tt.named, Minimum: tt.minimum}.normalize()
		if diff := cmp.Diff(tt.want, c.Drivers); diff != "" || (err == nil) != (tt.want != nil) {
			t.Errorf("%q from %q: %v %s", tt.named, tt.minimum, err, diff)
		}
	}
}

func TestLimitsAreRefused(t *testing.T) {
	for _, l := range []Limits{{Wall: -1}, {Memory: 1 << 20}, {Files: 2}} {
		if _, err := l.normalize(); err == nil {
			t.Errorf("%+v accepted", l)
		}
	}
}

const waitLimit = 20 * time.Second
