package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/keydir"
)

// follower is `writ plan logs RUN -f --json`.
type follower struct {
	lines  chan catalog.LogLine
	ended  chan int // its exit code
	output bytes.Buffer
}

func (x *machine) followLog(run string, more ...string) *follower {
	x.t.Helper()
	f := &follower{lines: make(chan catalog.LogLine, 100), ended: make(chan int, 1)}
	r, w := io.Pipe()
	go func() {
		code := cli.Main(x.t.Context(), append([]string{"plan", "logs", run, "--json", "--url", x.url, "--key", x.key}, more...), cli.IO{Out: w, Err: &f.output, Env: func(string) string { return "" }})
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
		t.Fatalf("writ plan logs ended with %d: %s", code, f.output.String())
	}
	return out
}

func shown(l catalog.LogLine) string {
	return fmt.Sprintf("%d %s %s", l.Step, l.Source, strings.SplitN(l.Text, ":", 2)[0])
}

// TestFollowerOverRestart: a follower sees each line once and in order, although writ is killed
// while a script runs whose lines it has seen, and started again.
func TestFollowerOverRestart(t *testing.T) {
	t.Parallel()
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
	got = slices.DeleteFunc(got, func(line string) bool { return strings.HasPrefix(line, "1 ") }) // the follower may come after the first step
	want := []string{"2 python:stderr first", "2 python:stderr waiting", "2 writ exec_python failed", "2 python:stderr again"}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	x.finished(id)
	if d := gocmp.Diff(want[2:3], x.followLog(id, "--errors").all(t)); d != "" {
		t.Errorf("errors of the run that has ended (-want +got)\n%s", d)
	}
	x.records(id) // and the record verifies
}

// open opens an address as its client would, and gives the lines up to the end of the log.
func (s *system) open(who person, address string, also ...func(line catalog.LogLine)) (out []string, err error) {
	s.t.Helper()
	to := client.Client{URL: s.url, Key: who.key}
	err = to.Stream(s.t.Context(), address, "", true, func(_ string, raw json.RawMessage) error {
		var l catalog.LogLine
		if err := json.Unmarshal(raw, &l); err != nil {
			return err
		}
		out = append(out, shown(l))
		for _, f := range also {
			f(l)
		}
		return nil
	})
	return out, err
}

// sign signs an intent under a person's grant with the gateway's key, and submits it.
func (s *system) sign(who person, typ string, args any) (status int, a intents.Answer, p problem) {
	s.t.Helper()
	return s.signAs(intents.RoleGateway, who, typ, args)
}

// signAs signs an intent under a person's grant with the key of a role, and submits it.
func (s *system) signAs(role intents.Role, who person, typ string, args any) (status int, a intents.Answer, p problem) {
	s.t.Helper()
	keys, err := keydir.Load(filepath.Join(s.dir, "keys"))
	if err != nil {
		s.t.Fatal(err)
	}
	var g struct {
		Grant, Origin string
		Tenant        string `json:"tenant_id"`
		User          string `json:"user_id"`
		Turn          string `json:"turn_id"`
	}
	s.call(who, http.MethodPost, "/v1/grants", nil, &g)
	signed, _, err := intents.Sign(keys[role], intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: typ, Args: json.RawMessage(marshalled(args))}, Actor: intents.Actor{UserID: g.User, Tenant: g.Tenant, Grant: g.Grant}, Context: &intents.Context{TurnID: g.Turn},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(time.Now()), TTLSec: 60, Audience: g.Origin, IdempotencyKey: catalog.RandomKey()},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	status, p = s.call(person{}, http.MethodPost, "/v1/intents", json.RawMessage(signed), &a)
	return status, a, p
}

// wantCode fails unless a client was refused with a code.
func wantCode(t *testing.T, what string, err error, want intents.Code) {
	t.Helper()
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != want {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

// TestLogOfARun: who may request a log and open its address; the lines of a script and a skill
// server are there; and the right to read ends with the grant.
func TestLogOfARun(t *testing.T) {
	t.Parallel()
	now := new(atomic.Int64)
	hold := newGate()
	m := &mind{
		plan: func(planning) model.Call {
			return steps(step(1, "count the stock", "stock_list", 0, "{total: integer}"), step(2, "count it again", "stock_list", 0, "{total: integer}"))
		},
		act: func(in working) action {
			if len(in.Calls) == 0 {
				if in.Step == 2 {
					hold.pass(context.Background())
				}
				return use("stock_list", "{}")
			}
			return extract
		},
		script: func(in scripting) string {
			if in.Error == "" && in.Task == "count the stock" {
				return "import sys\nprint('look: \x1b[2J', file=sys.stderr)\nraise ValueError('no such column')"
			}
			return totalScript
		},
	}
	s := start(t, setup{Skills: []string{serveStock(t).url}, Model: m, Now: func() time.Time { return time.Now().Add(time.Duration(now.Load())) }})
	ana, bob := s.addPerson("default", "ana", "user"), s.addPerson("default", "bob", "user")
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "quiet", Capabilities: []string{"plans:*", "agents:run:*"}}})
	quiet := s.addPerson("default", "quinn", "quiet")
	s.addTenant("acme")
	carol := s.addPerson("acme", "carol", "user", "auditor")

	t.Cleanup(func() { close(hold.open) })
	go func() { // until the test ends
		_, _ = client.Client{URL: s.url, Key: ana.key}.Run(t.Context(), stockTask, func(client.Frame) error { return nil })
	}()
	var id string
	s.await("the plan is there", func() bool {
		var list catalog.PlanListResult
		if s.call(ana, http.MethodGet, "/agent/plans", nil, &list); len(list.Plans) > 0 {
			id = list.Plans[0].PlanID
		}
		return id != ""
	})
	run := catalog.LogsStream{RunID: id}

	for name, who := range map[string]person{"another user": bob, "another tenant": carol} {
		if status, p := s.call(who, http.MethodPost, "/v1/logs", run, nil); status != http.StatusNotFound || p.Code != intents.NotFound {
			t.Errorf("%s: HTTP %d %+v", name, status, p)
		}
	}
	if status, p := s.call(quiet, http.MethodPost, "/v1/logs", run, nil); status != http.StatusForbidden || p.Code != intents.RBACForbidden {
		t.Errorf("without logs:read: HTTP %d %+v", status, p)
	}
	if status, _, p := s.sign(quiet, "logs.stream", run); status != http.StatusForbidden || p.Code != intents.RBACForbidden {
		t.Errorf("a signed intent without logs:read: HTTP %d %+v", status, p)
	}
	_, a, p := s.sign(ana, "logs.stream", run)
	var made catalog.LogsStreamResult
	if a.Outcome == nil || json.Unmarshal(a.Outcome.Result, &made) != nil || !strings.HasPrefix(made.StreamURL, "ws"+strings.TrimPrefix(s.url, "http")) {
		t.Fatalf("%+v %+v", a, p)
	}
	var kept struct {
		Outcome intents.Outcome `json:"outcome"`
	}
	s.call(ana, http.MethodGet, "/v1/intents/"+a.IntentID, nil, &kept)
	if want := `{"sha256":"` + intents.Digest([]byte(path.Base(made.StreamURL))) + `"}`; string(kept.Outcome.Result) != want {
		t.Errorf("the record has of a stream %s, want %s", kept.Outcome.Result, want)
	}
	_, err := s.open(bob, made.StreamURL)
	wantCode(t, "another bearer", err, intents.NotFound)
	_, err = s.open(quiet, made.StreamURL)
	wantCode(t, "without logs:read", err, intents.RBACForbidden)

	failed := make(chan struct{})
	seen := make(chan error, 1)
	var got []string
	go func() {
		var err error
		got, err = s.open(ana, made.StreamURL, func(l catalog.LogLine) {
			if l.Source == intents.SourceWrit {
				close(failed)
			}
		})
		seen <- err
	}()
	select {
	case <-failed:
	case <-time.After(patience):
		t.Fatal("the lines of the script do not come")
	}
	_, err = s.open(ana, made.StreamURL)
	wantCode(t, "a second time", err, intents.NotFound)
	s.operate("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: intents.FormatTime(time.Now())})
	wantCode(t, "after the revocation", <-seen, intents.RBACForbidden)
	want := []string{
		"1 python:stderr look", "1 python:traceback Traceback (most recent call last)", `1 python:traceback   File "script.py", line 3, in <module>`,
		"1 python:traceback     raise ValueError('no such column')", "1 python:traceback ValueError", "1 writ exec_python failed",
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	s.call(s.as("local"), http.MethodPost, "/v1/logs", run, &made) // who sees all plans of the tenant
	now.Add(int64(90 * time.Second))
	_, err = s.open(s.as("local"), made.StreamURL)
	wantCode(t, "after 90 seconds", err, intents.NotFound)
}
