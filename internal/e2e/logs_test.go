package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/cli"
)

// follower is `writ logs RUN -f --json`.
type follower struct {
	lines chan catalog.LogLine
	ended chan int // its exit code
	said  bytes.Buffer
}

func (x *machine) followLog(run string, more ...string) *follower {
	x.t.Helper()
	f := &follower{lines: make(chan catalog.LogLine, 100), ended: make(chan int, 1)}
	r, w := io.Pipe()
	go func() {
		code := cli.Main(x.t.Context(), append([]string{"logs", run, "--json", "--url", x.url, "--key", x.key}, more...), cli.IO{Out: w, Err: &f.said, Env: func(string) string { return "" }})
		_ = w.Close()
		f.ended <- code
	}()
	go func() {
		defer close(f.lines)
		in := bufio.NewScanner(r)
		for in.Scan() {
			var l catalog.LogLine
			if err := json.Unmarshal(in.Bytes(), &l); err != nil {
				l.Text = err.Error()
			}
			f.lines <- l
		}
	}()
	return f
}

// all are the lines up to the end of the log.
func (f *follower) all(t *testing.T) (out []string) {
	t.Helper()
	for l := range f.lines {
		out = append(out, shown(l))
	}
	if code := <-f.ended; code != 0 {
		t.Fatalf("writ logs ended with %d: %s", code, f.said.String())
	}
	return out
}

func shown(l catalog.LogLine) string {
	return fmt.Sprintf("%d %s %s", l.Step, l.Source, strings.SplitN(l.Text, ":", 2)[0])
}

// TestFollowerOverRestart: a follower sees each line once and in order, although writ is killed
// while a script runs whose lines it has seen, and started again.
func TestFollowerOverRestart(t *testing.T) {
	const head = "import json,sys,time\ndef say(x): print(x, file=sys.stderr, flush=True)\n"
	const tail = "print(json.dumps(json.load(open(input_file))['parcels']))"
	m := porter("parcel_list")
	var killed atomic.Bool
	m.act = func(in working) action {
		if len(in.Calls) == 0 {
			return use(in.Skills[0], `{}`)
		}
		return extract
	}
	m.plan = func(planning) model.Call {
		const shape = "array<{parcel: string, weight: integer}>"
		return steps(step(1, "list the parcels", "parcel_list", 0, shape), step(2, "list them again", "parcel_list", 0, shape))
	}
	m.script = func(in scripting) string {
		switch {
		case in.Task == "list the parcels":
			return head + "say('one')\nsay('two')\n" + tail
		case killed.Load():
			return head + "say('again')\n" + tail
		}
		return head + "say('first')\nsay('waiting')\ntime.sleep(25)\n" + tail
	}
	x := boot(t, m, serveDepot(t, nil).skills)
	x.args[slices.Index(x.args, "--listen")+1] = strings.TrimPrefix(x.url, "http://") // where the follower looks again
	id := x.ask(accepted)
	f := x.followLog(id, "-f")
	var got []string
	for l := range f.lines {
		if got = append(got, shown(l)); l.Text == "waiting" {
			break
		}
	}
	killed.Store(true)
	x.kill()
	x.start()
	got = append(got, f.all(t)...)
	want := []string{"1 python:stderr one", "1 python:stderr two", "2 python:stderr first", "2 python:stderr waiting", "2 writ exec_python failed", "2 python:stderr again"}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	x.finished(id)
	if d := gocmp.Diff(want[4:5], x.followLog(id, "--errors").all(t)); d != "" {
		t.Errorf("errors of the run that has ended (-want +got)\n%s", d)
	}
	x.records(id) // and the record verifies
}
