package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/failpoint"
)

// load is a machine and its load: a plan whose last step acts, and
// intents that the test signs itself. It notes what was acknowledged.
type load struct {
	*machine
	how      death
	mark     string // WRIT_FAILPOINT_AFTER
	approver person // of held intents; no key: nothing is held yet
	depot    *depot
	sick     *atomic.Bool // the skill server fails; nil: it never does
	sessions [][]byte     // signed once, sent again after every death

	mu       sync.Mutex // guards the fields below
	plans    []string
	accepted map[string]intents.Answer // by intent_id
}

// beginLog makes a data directory in which nothing is held.
func beginLog(t *testing.T, exe string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "begun")
	x := &machine{system: &system{t: t, dir: dir}, exe: exe, args: []string{"up", "--data", dir, "--listen", "127.0.0.1:0"}}
	t.Cleanup(func() {
		if x.cmd != nil {
			x.end(syscall.SIGKILL)
		}
	})
	x.start()
	x.holdNothing()
	x.end(syscall.SIGTERM)
	return dir
}

func newLoad(t *testing.T, exe, begun string, how death) *load {
	t.Helper()
	skill := how.skill
	if skill == "" {
		skill = "parcel_send"
	}
	dir := filepath.Join(t.TempDir(), "data")
	if how.point != failpoint.GenesisKeys && how.point != failpoint.GenesisCommitted {
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", begun, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	mark := ""
	reached := func(when string) {
		if when != how.after {
			return
		}
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	if how.after != "" {
		mark = filepath.Join(t.TempDir(), "mark")
	}
	d := serveDepot(t, nil)
	d.watch = func(called string) {
		if called == skill {
			reached(acted)
		}
	}
	l := &load{
		how: how, mark: mark,
		machine: &machine{system: &system{t: t, dir: dir}, exe: exe, args: []string{
			"up", "--data", dir, "--listen", "127.0.0.1:0", "--skills", d.skills, "--model", "openai:mock", "--model-url", serveModel(t, sender(skill, func() { reached(chosen) })),
		}},
		depot: d, accepted: make(map[string]intents.Answer),
	}
	if how.sick {
		at := strings.LastIndexByte(d.skills, ' ') + 1
		var front string
		front, l.sick, _ = serveSick(t, strings.TrimSuffix(d.skills[at:], "/mcp"))
		l.args[slices.Index(l.args, d.skills)] = d.skills[:at] + front + "/mcp"
		l.args = append(l.args, "--breaker-failures", "1", "--breaker-reset-ms", "1")
	}
	t.Cleanup(func() {
		if l.cmd != nil {
			l.end(syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("the last writ said:\n%s", l.stderr.Bytes())
		}
	})
	return l
}

// sender is a porter that looks instead where it may not send again. It reports when it has chosen
// to act.
func sender(skill string, chosen func()) *mind {
	m := porter(skill)
	write, decide := m.plan, m.act
	m.plan = func(in planning) model.Call {
		out := stepsOf(write(in))
		if last := &out[len(out)-1]; in.Failed != nil {
			last.Skills = append(last.Skills, "parcel_state")
		}
		return steps(out...)
	}
	m.act = func(in working) action {
		if len(in.Calls) == 1 && in.Calls[0].Error != "" {
			return use("parcel_state", `{}`)
		}
		if in.Step > 1 && len(in.Calls) == 0 {
			chosen()
		}
		return decide(in)
	}
	return m
}

// die runs writ under load until it has died at the point.
func (l *load) die(at string) {
	l.t.Helper()
	if l.launch(failpoint.Variable + "=" + at) {
		if l.how.held && l.approver.key == "" {
			l.approver = l.addPerson("default", "ben", "user", "approver")
			l.operate("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"user", "approver"}}})
			l.holdBack("parcel_send")
		}
		if l.sick != nil {
			l.sick.Store(true)
		}
		asked, stop := context.WithCancel(l.t.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			for asked.Err() == nil && l.askPlan(asked) {
				l.approve(asked)
			}
		})
		asking.Go(func() { l.sendSessions(asked) })
		if l.how.erase {
			asking.Go(func() { l.eraseSessions(asked) })
		}
		select {
		case <-l.ended:
		case <-time.After(patience):
			stop()
			l.t.Fatalf("writ does not come to %s", at)
		}
		stop()
		asking.Wait()
	}
	if status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		l.t.Fatalf("writ did not die at %s: %v\n%s", at, l.cmd.ProcessState, l.stderr.Bytes())
	}
	l.cmd = nil
}

// survive starts writ again, has everything come to its end and judges what is left.
func (l *load) survive() {
	l.t.Helper()
	if l.sick != nil {
		l.sick.Store(false)
	}
	l.start()
	l.holdBack() // nothing any more
	for _, id := range l.plans {
		l.finished(id)
	}
	l.askPlan(l.t.Context())
	l.sendSessions(l.t.Context())
	answers := map[string]string{}
	for _, id := range l.plans {
		answers[id] = l.finished(id).Response
	}
	if len(l.plans) == 0 || len(l.accepted) != len(l.sessions) {
		l.t.Fatalf("after its death writ took %d plans and %d of %d intents", len(l.plans), len(l.accepted), len(l.sessions))
	}
	l.end(syscall.SIGTERM)
	l.judge()
	l.remembered(answers)
	l.forgets(addedWord)
}

// holdBack makes calls of skills wait for people.
func (l *load) holdBack(skills ...string) {
	l.t.Helper()
	value, err := json.Marshal(map[string][]string{"skills": append([]string{}, skills...)})
	if err != nil {
		l.t.Fatal(err)
	}
	l.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: value}})
}

// approve approves all held intents.
func (l *load) approve(ctx context.Context) {
	if l.approver.key == "" {
		return
	}
	var page bus.ApprovalsReply
	l.send(ctx, http.MethodGet, "/agent/approvals", "", &page)
	for _, o := range page.Approvals {
		l.send(ctx, http.MethodPost, "/agent/approvals/"+o.IntentID, `{"decision":"approve","reason":"go on"}`, nil)
	}
}

// send asks as the approver. It fails silently: writ may have died.
func (l *load) send(ctx context.Context, method, path, body string, out any) {
	req, err := http.NewRequestWithContext(ctx, method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return
	}
	req.Header.Set("X-Api-Key", l.approver.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if out != nil {
		_ = json.NewDecoder(resp.Body).Decode(out)
	}
}

// askPlan asks for a plan and follows it while there is somebody to follow, and returns whether the
// plan was accepted.
func (l *load) askPlan(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/agent/run", strings.NewReader(`{"stream":true,"message":"Weigh the parcels"}`))
	if err != nil {
		l.t.Error(err)
		return false
	}
	req.Header.Set("X-Api-Key", l.key)
	req.Header.Set("X-Added-Instruction", addedWord)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false // it died before it had acknowledged anything
	}
	defer resp.Body.Close()
	id := resp.Header.Get("X-Plan-Id")
	if id == "" {
		return false
	}
	l.mu.Lock()
	l.plans = append(l.plans, id)
	l.mu.Unlock()
	_, _ = io.Copy(io.Discard, resp.Body) // it ends with the plan or with writ
	return true
}

// launch starts writ with a variable and returns whether it came up before it died.
func (l *load) launch(variable string) bool {
	l.t.Helper()
	announced := l.run(append(os.Environ(), "WRIT_MODEL_KEY=sk-test", variable, failpoint.After+"="+l.mark))
	select {
	case l.url = <-announced:
	case <-l.ended:
		return false
	case <-time.After(patience):
		l.t.Fatal("writ up says nothing")
	}
	var err error
	if l.key, err = datadir.LocalKey(l.dir); err != nil {
		l.t.Fatal(err)
	}
	return true
}
