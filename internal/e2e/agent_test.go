package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/e2e/testdata/crm"
)

// closings is how many tickets an agent closes in one reply.
const closings = 6

// closer is the agent general that closes tickets in one reply, and reports it. If a call was not
// answered with its result, a task was killed: it then writes all calls again.
func closer(m *mind) func(model.Request) *model.Response {
	return func(req model.Request) *model.Response {
		var done, unknown int
		for _, x := range exchanges(req) {
			switch {
			case strings.Contains(x.result, `"status":"unknown"`):
				unknown++
			case strings.Contains(x.result, `"status":"done"`), // as an operator found out
				strings.Contains(x.result, `"result":`) && !strings.Contains(x.result, `"already_done":true`):
				done++
			}
		}
		if done+unknown == closings {
			return &model.Response{Text: fmt.Sprintf("%d closed, %d unknown.", done, unknown), Model: m.Name()}
		}
		tool := offered(req, "close_ticket")
		if tool == nil {
			return &model.Response{Text: "There is no close_ticket.", Model: m.Name()}
		}
		var calls []model.Call
		for n := range closings {
			c := call(tool.Name, fmt.Sprintf(`{"ticket":"T-%d"}`, n+1))
			c.ID = fmt.Sprintf("call_%d_%d", len(req.Messages), n)
			calls = append(calls, c)
		}
		return &model.Response{Calls: calls, Model: m.Name()}
	}
}

// general is a mind whose agent general is a function.
type general struct {
	*mind
	do func(model.Request) *model.Response
}

func (g general) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	if req.Agent != "general" {
		return g.mind.Respond(ctx, req, on)
	}
	return g.do(req), nil
}

// serveHeldCRM serves the CRM. The answer to the call of a tool after which killAt are
// counted is withheld: the call was executed without an answer.
func serveHeldCRM(t *testing.T, tool string, killAt int) (records *crm.Server, skills string, reached chan struct{}) {
	t.Helper()
	records = crm.New(time.Now().UTC())
	reached, end := make(chan struct{}), make(chan struct{})
	inner := records.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before, answer := records.Calls(tool), httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		if n := records.Calls(tool); n == killAt && n > before { // once calls of one reply go in turn
			close(reached)
			<-end
			return
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the caller may be dead
	}))
	t.Cleanup(func() {
		close(end)
		srv.CloseClientConnections()
		srv.Close()
	})
	return records, "name=crm -- " + srv.URL + "/mcp", reached
}

// TestAgentPlan: a turn of the agent general is a plan that can be read with its trace
// while it runs and when it has ended. Killed in the middle of calls that nobody can undo
// it waits until an operator has reported the effect of the call under way, then continues,
// and no ticket is closed twice.
func TestAgentPlan(t *testing.T) {
	t.Parallel()
	for name, killAt := range map[string]int{"undisturbed": 0, "killed": 4} {
		t.Run(name, func(t *testing.T) {
			records, skills, reached := serveHeldCRM(t, "close_ticket", killAt)
			m := &mind{}
			x := boot(t, general{m, closer(m)}, skills)
			x.holdNothing()
			id := x.post(`{"stream":true,"agent":"general","message":"Close the first six tickets."}`, accepted)
			if killAt > 0 {
				<-reached
				if v := x.plan(id); v.Status != catalog.PlanExecuting || len(v.Steps) != 1 || v.Steps[0].Status != catalog.StepRunning {
					t.Errorf("while it runs: %+v", v)
				}
				x.kill()
				x.start()
				x.resolve(x.unknown(id), "done")
			}
			v := x.finished(id)
			if v.Status != catalog.PlanComplete || v.Agent != "general" || v.ReplanCount != 0 || v.Task == "" || v.Failure != nil {
				t.Errorf("plan %+v", v)
			}
			if s := v.Steps; len(s) != 1 || s[0].Task != "general" || s[0].Status != catalog.StepDone || !slices.Contains(s[0].Skills, "crm.close_ticket") {
				t.Errorf("steps %+v", s)
			}
			want := fmt.Sprintf("%d closed, 0 unknown.", closings)
			if v.Response != want {
				t.Errorf("answer %q", v.Response)
			}
			if calls := records.Calls("close_ticket"); calls != closings {
				t.Errorf("the CRM counted %d closings", calls)
			}
			var trace struct{ Events []event }
			if status, p := x.call(x.as("local"), http.MethodGet, "/agent/plans/"+id+"/trace", nil, &trace); status != http.StatusOK {
				t.Fatalf("trace: HTTP %d %+v", status, p)
			}
			got := map[string]int{}
			for _, e := range trace.Events {
				got[e.Type]++
			}
			if got["step_1.complete"] != 1 || got["step_1.started"] != v.Epoch {
				t.Errorf("trace %v", got)
			}
			var made []string
			for _, o := range x.records(id) {
				if o.Type == "skill.call" && o.Decision.Verdict != intents.Deny {
					made = append(made, line(o))
				}
			}
			lines := slices.Repeat([]string{"skill.call OK"}, closings)
			if killAt > 0 {
				lines[killAt-1] = "skill.call INDETERMINATE"
			}
			if d := gocmp.Diff(lines, made); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}
