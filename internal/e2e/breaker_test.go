package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
)

// serveSick passes calls of skills on and counts them, while it is not sick.
func serveSick(t *testing.T, to string) (url string, sick *atomic.Bool, calls *atomic.Int64) {
	t.Helper()
	behind, err := neturl.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	sick, calls = new(atomic.Bool), new(atomic.Int64)
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") != "" {
			calls.Add(1)
		}
		if sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL, sick, calls
}

// TestKillWhileOpen: after two failures in a row a server is not called, also by the writ started
// after a SIGKILL. The task is told that in words; so is the operator at the start, and the metrics
// show it.
func TestKillWhileOpen(t *testing.T) {
	t.Parallel()
	d := serveDepot(t, nil)
	at := strings.LastIndexByte(d.skills, ' ') + 1
	front, sick, calls := serveSick(t, strings.TrimSuffix(d.skills[at:], "/mcp"))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	metrics := free.Addr().String()
	free.Close()
	var told []string
	m := &mind{
		plan: func(in planning) model.Call {
			if in.Failed != nil {
				return infeasible("the parcels cannot be weighed today")
			}
			return steps(step(1, "weigh", "parcel_weigh", 0, "{total: integer}"))
		},
		act: func(in working) action {
			told = nil
			for _, c := range in.Calls {
				told = append(told, c.Error)
			}
			if len(told) < 3 {
				return use("parcel_weigh", `{"try":`+string(rune('0'+len(told)))+`}`)
			}
			return insufficient("the server does not answer", "try later")
		},
	}
	x := boot(t, m, d.skills[:at]+front+"/mcp", "--breaker-failures", "2", "--breaker-reset-ms", "3600000", "--metrics", metrics)
	sick.Store(true)
	first := x.ask(accepted)
	x.finished(first)
	if words := told[2]; !strings.Contains(words, "nothing was sent") || !strings.Contains(words, "has failed 2 times in a row") {
		t.Errorf("told %q", words)
	}
	resp, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	counts, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(counts), "\ncircuit_breaker_state{agent_id=\"skills-1\"} 2\n") || !strings.Contains(string(counts), "\ncircuit_breaker_transitions_total{to=\"open\"} 1\n") {
		t.Errorf("%v\n%s", err, counts)
	}
	x.kill()
	sick.Store(false) // it works again, but no call has shown it
	x.start()
	before := calls.Load()
	second := x.ask(accepted)
	x.finished(second)
	if n := calls.Load() - before; n != 0 {
		t.Errorf("the server got %d calls", n)
	}
	x.kill()
	if said := x.stderr.String(); !strings.Contains(said, "has failed 2 times in a row: since ") {
		t.Errorf("writ up said:\n%s", said)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	doctor := exec.CommandContext(t.Context(), exe)
	doctor.Args = []string{"writ", "doctor", "--data", x.dir}
	if said, _ := doctor.CombinedOutput(); !strings.Contains(string(said), "tenant default: skill server skills-1 has failed 2 times in a row: since ") { // what else it finds is not asked
		t.Errorf("writ doctor said:\n%s", said)
	}
	const refused = "skill.call DISPATCH_UNAVAILABLE"
	for id, want := range map[string][]string{
		first:  {"skill.call EXECUTOR_FAILED", "skill.call EXECUTOR_FAILED", refused, refused, refused, "step.finish OK"}, // the first call is sent again, and so is refused
		second: {refused, refused, refused, "step.finish OK"},
	} {
		x.start()
		if d := gocmp.Diff(want, lines(x.records(id), 1)); d != "" {
			t.Error(d)
		}
	}
}

// TestBreakerAfterThirtySeconds: by default a server that has failed five times is not called for
// thirty seconds, and then it is. Once three calls have gone well it is called as ever.
func TestBreakerAfterThirtySeconds(t *testing.T) {
	t.Parallel()
	url, sick, calls := serveSick(t, strings.TrimSuffix(serveStock(t).url, "/mcp"))
	told := ""
	m := &mind{
		plan: func(in planning) model.Call {
			if in.Failed != nil {
				return infeasible("the stock cannot be listed today")
			}
			return steps(step(1, "list the stock", "stock_list", 0, stockShape))
		},
		act: func(in working) action {
			if len(in.Calls) > 0 && in.Calls[0].Error != "" {
				told = in.Calls[0].Error
				return insufficient("the server does not answer", "try later")
			}
			return listStock(in)
		},
	}
	now := atomic.Int64{} // a clock that stands until it is moved
	now.Store(time.Now().UnixMilli())
	s := start(t, setup{Model: m, Skills: []string{url + "/mcp"}, Now: func() time.Time { return time.UnixMilli(now.Load()) }})
	ask := func(want string, called bool) {
		t.Helper()
		before := calls.Load()
		if got := s.ask(s.as("ana"), stockTask); got.Status != want || calls.Load() > before != called {
			t.Errorf("%s %s after %d calls; want %s, called %t", got.Status, got.Reason, calls.Load()-before, want, called)
		}
	}
	sick.Store(true)
	for n := 0; !strings.Contains(told, "has failed 5 times in a row"); n++ {
		if n == 5 {
			t.Fatalf("told %q", told)
		}
		s.ask(s.as("ana"), stockTask)
	}
	sick.Store(false)
	ask("failed", false)
	now.Add(29_999)
	ask("failed", false)
	now.Add(1)
	ask("complete", true)
}

// TestThreeProbes: a server that is tried again gets three calls at most. If none of them has gone
// well after a minute, it is not called for another thirty seconds, whatever they answer later.
func TestThreeProbes(t *testing.T) {
	t.Parallel()
	url, sick, calls := serveSick(t, strings.TrimSuffix(serveStock(t).url, "/mcp"))
	behind, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	var hangs atomic.Bool
	hung, release := make(chan struct{}, 8), make(chan struct{})
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() && r.Header.Get("Idempotency-Key") != "" {
			hung <- struct{}{}
			<-release
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	m := &mind{
		plan: func(in planning) model.Call {
			if in.Failed != nil {
				return infeasible("the stock cannot be listed today")
			}
			return steps(step(1, "list the stock", "stock_list", 0, stockShape))
		},
		act: func(in working) action {
			if len(in.Calls) > 0 && in.Calls[0].Error != "" {
				return insufficient("the server does not answer", "try later")
			}
			return listStock(in)
		},
	}
	now := atomic.Int64{}
	now.Store(time.Now().UnixMilli())
	s := start(t, setup{Model: m, Skills: []string{front.URL + "/mcp"}, Now: func() time.Time { return time.UnixMilli(now.Load()) }})
	refused := func(when string) {
		t.Helper()
		before := calls.Load()
		if got := s.ask(s.as("ana"), stockTask); got.Status != "failed" || calls.Load() != before || len(hung) > 0 {
			t.Errorf("%s: %s, %d calls", when, got.Status, calls.Load()-before)
		}
	}
	sick.Store(true)
	for before := int64(-1); calls.Load() != before; { // until it is not called any more
		before = calls.Load()
		s.ask(s.as("ana"), stockTask)
	}
	sick.Store(false)
	hangs.Store(true)
	now.Add(30_000)
	var asked sync.WaitGroup
	for _, user := range []string{"ben", "cleo", "dan"} {
		asked.Go(func() { s.ask(s.as(user), stockTask) })
		<-hung
	}
	refused("a fourth call")
	hangs.Store(false)
	now.Add(60_000)
	refused("after a minute")
	close(release)
	asked.Wait()
	refused("after late answers")
	now.Add(30_000)
	if got := s.ask(s.as("ana"), stockTask); got.Status != "complete" {
		t.Errorf("after another thirty seconds: %s %s", got.Status, got.Reason)
	}
}
