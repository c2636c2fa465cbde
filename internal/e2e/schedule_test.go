package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// TestSchedule: a request that is due while writ is dead is carried out once when it is back,
// and one during which it is killed goes on. Each is one plan, and neither is due again.
func TestSchedule(t *testing.T) {
	t.Parallel()
	m := &mind{}
	_, skills, _ := serveHeldCRM(t, "close_ticket", 0)
	asked, answer := make(chan struct{}), make(chan struct{})
	var first sync.Once
	x := boot(t, general{m, func(req model.Request) *model.Response {
		if strings.Contains(req.Messages[len(req.Messages)-1].Text, "Water") {
			first.Do(func() { close(asked); <-answer })
		}
		return &model.Response{Text: "Done.", Model: m.Name()}
	}}, skills)
	later := func(input string, at time.Time) {
		t.Helper()
		var got catalog.ScheduleNext
		if status, p := x.call(person{key: x.key}, http.MethodPost, "/agent/schedules", catalog.SchedulePut{Agent: "general", Input: input, At: at.Format(time.RFC3339Nano)}, &got); status != http.StatusOK {
			t.Fatalf("HTTP %d: %+v", status, p)
		}
	}
	plans := func() (out map[string][]catalog.PlanView) {
		t.Helper()
		var page catalog.PlanListResult
		if status, p := x.call(person{key: x.key}, http.MethodGet, "/agent/plans", nil, &page); status != http.StatusOK {
			t.Fatalf("HTTP %d: %+v", status, p)
		}
		out = make(map[string][]catalog.PlanView)
		for _, v := range page.Plans {
			out[v.Task] = append(out[v.Task], v)
		}
		return out
	}
	due := time.Now().Add(time.Second)
	later("Call the clinic.", due)
	x.kill()
	x.await("the time comes", func() bool { return time.Now().After(due) })
	x.start()
	x.await("the missed one is carried out", func() bool {
		all := plans()["Call the clinic."]
		return len(all) == 1 && all[0].Status == catalog.PlanComplete
	})

	later("Water the plants.", time.Now().Add(time.Second))
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("the plan does not begin")
	}
	x.kill()
	close(answer)
	x.start()
	x.await("the interrupted one goes on", func() bool {
		all := plans()["Water the plants."]
		return len(all) == 1 && all[0].Status == catalog.PlanComplete
	})
	var left struct{ Schedules []catalog.Schedule }
	x.call(person{key: x.key}, http.MethodGet, "/agent/schedules", nil, &left)
	if len(left.Schedules) != 0 || len(plans()["Call the clinic."]) != 1 {
		t.Errorf("left %+v, plans %+v", left, plans())
	}
}
