package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
)

// TestKillWhileOpen: after two failures in a row a server is not called, also by the writ that comes
// after a SIGKILL. The task is told so in words, as are the operator who starts writ, and whoever reads its metrics.
func TestKillWhileOpen(t *testing.T) {
	d := serveDepot(t, nil)
	at := strings.LastIndexByte(d.skills, ' ') + 1
	behind, err := url.Parse(strings.TrimSuffix(d.skills[at:], "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	var sick atomic.Bool
	var calls atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1); sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
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
	x := boot(t, m, d.skills[:at]+front.URL+"/mcp", "--breaker-failures", "2", "--breaker-reset-ms", "3600000")
	sick.Store(true)
	orders := x.records(x.finished(x.ask(accepted)).PlanID)
	want := []string{ // the first call is sent again, and so is refused
		"skill.call EXECUTOR_FAILED", "skill.call EXECUTOR_FAILED", "skill.call DISPATCH_UNAVAILABLE",
		"skill.call DISPATCH_UNAVAILABLE", "skill.call DISPATCH_UNAVAILABLE", "step.finish OK",
	}
	if d := gocmp.Diff(want, lines(orders, 1)); d != "" {
		t.Fatal(d)
	}
	if words := told[2]; !strings.Contains(words, "nothing was sent") || !strings.Contains(words, "has failed 2 times in a row") {
		t.Errorf("told %q", words)
	}
	x.kill()
	x.start()
	sick.Store(false) // it works again, but nobody has tried it
	before := calls.Load()
	orders = x.records(x.finished(x.ask(accepted)).PlanID)
	i := slices.IndexFunc(orders, func(o order) bool { return o.Type == "skill.call" && o.Outcome != nil })
	if i < 0 || orders[i].Outcome.Code != intents.DispatchUnavailable || orders[i].Outcome.Status != intents.Failed {
		t.Errorf("%q", lines(orders, 1))
	}
	if n := calls.Load() - before; n != 0 {
		t.Errorf("the server got %d requests", n)
	}
	x.kill()
	if said := x.stderr.String(); !strings.Contains(said, "has failed 2 times in a row: since ") {
		t.Errorf("writ up said:\n%s", said)
	}
}
