//go:build linux && (amd64 || arm64)

package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunResult(t *testing.T) {
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{Driver: name})
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
				res.Queued, res.Duration, res.CPU, res.Warm = 0, 0, 0, false
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
		{
			"text that it executes", "def f():\n    exec('\\n\\n\\n1/0')\n\nf()\n",
			"Traceback (most recent call last):\n" +
				"  File \"script.py\", line 4, in <module>\n    f()\n" +
				"  File \"script.py\", line 2, in f\n    exec('\\n\\n\\n1/0')\n" +
				"ZeroDivisionError: division by zero",
		},
		{
			"syntax of such text", "eval('1 +')\n",
			"Traceback (most recent call last):\n  File \"script.py\", line 1, in <module>\n    eval('1 +')\nSyntaxError: invalid syntax",
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
	s, err := Open(t.Context(), Config{Dir: testBase, Workers: -1})
	if embeddedPython == "" {
		if err == nil || !strings.Contains(err.Error(), "install CPython") {
			t.Errorf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	version, _, _ := strings.Cut(embeddedPython, "-")
	if res := run(t, s, Job{Script: "print(__import__('os').urandom(4) != bytes(4))"}); string(res.Output) != "True\n" || res.Python != version {
		t.Errorf("%+v", res)
	}
}
