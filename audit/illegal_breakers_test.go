package audit_test

import (
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const (
	markedByBreaker = "skill.call: a call has the mark that its breaker gives"
	refusedUnsent   = "skill.call: what a breaker refuses is not sent"
)

// broken is a plan whose skill server has failed, and which has a call on hold from before.
func (d *dishonest) broken() {
	d.Helper()
	d.Pin("pay", catalog.Once)
	d.Approval(`{"skills":["pay"]}`, "ben")
	d.plan = d.Begun("plan_1", "pay")
	d.start()
	d.held = d.Want(d.task.Call("pay", `{"n":0}`), intents.ApprovalRequired)
	d.Data("approval", `{"once":false}`)
	report := routertest.Failed(intents.ExecutorFailed)
	report.Transport = &intents.Transport{Failure: true}
	d.Bus.On("skill.call", routertest.Always(report))
	for n := range intents.DefaultBreakers.Failures {
		d.Want(d.task.Call("pay", fmt.Sprintf(`{"n":%d}`, n+1)), intents.ExecutorFailed)
	}
}

// goes appends a call with a mark. It is done, unless the changes say otherwise.
func (d *dishonest) goes(n int, mark intents.BreakerMark, changes ...func(*appended)) int64 {
	d.Helper()
	return d.accepted(d.task.CallIntent("pay", fmt.Sprintf(`{"n":%d}`, 10+n)), append([]func(*appended){once, func(a *appended) {
		a.inputs.Breaker, a.outcome["transport"] = mark, map[string]any{"sent": true, "failure": false}
	}}, changes...)...)
}

// Results of calls.
func unanswered(a *appended) { a.outcome = nil }

func failed(a *appended) {
	a.outcome["status"], a.outcome["code"], a.outcome["retryable"] = "failed", "EXECUTOR_FAILED", true
	a.outcome["transport"], a.result = map[string]any{"sent": false, "failure": true}, map[string]any{}
}

func unsent(a *appended) {
	failed(a)
	a.outcome["code"] = "DISPATCH_UNAVAILABLE"
	delete(a.outcome, "transport")
}

// mendsLegally: refused, probed without success, probed by a round without answers, mended.
func (d *dishonest) mendsLegally() {
	d.Helper()
	d.goes(0, "open", unsent)
	d.Clock.Move(30 * time.Second)
	d.goes(1, "probe", failed)
	d.goes(2, "open", unsent)
	d.Clock.Move(30 * time.Second)
	for n := range 3 {
		d.goes(3+n, "probe", unanswered)
	}
	d.goes(6, "open", unsent)
	d.Clock.Move(time.Minute)
	d.goes(7, "open", unsent)
	d.Clock.Move(30 * time.Second)
	d.goes(8, "probe")
	d.goes(9, "")
	_, by, yes := d.says(routertest.Intent{User: "ben", Roles: []string{"approver"}})
	d.released(*d.held.Position, by, yes)
}

// breakerMisdeeds call servers that are not to be called, and pretend that others are not.
var breakerMisdeeds = []misdeed{
	{"called-while-open", "broken", markedByBreaker, `marks it "open", and the record says ""`, func(d *dishonest) int64 {
		return d.goes(0, "")
	}},
	{"probed-too-early", "broken", markedByBreaker, `marks it "open", and the record says "probe"`, func(d *dishonest) int64 {
		d.Clock.Move(30*time.Second - time.Millisecond)
		return d.goes(0, "probe")
	}},
	{"probe-unmarked", "broken", markedByBreaker, `marks it "probe", and the record says ""`, func(d *dishonest) int64 {
		d.Clock.Move(30 * time.Second)
		return d.goes(0, "")
	}},
	{"fourth-probe", "broken", markedByBreaker, `marks it "open", and the record says "probe"`, func(d *dishonest) int64 {
		d.Clock.Move(30 * time.Second)
		for n := range 3 {
			d.goes(n, "probe", unanswered)
		}
		return d.goes(3, "probe")
	}},
	{"probed-after-failed-probe", "broken", markedByBreaker, `marks it "open", and the record says "probe"`, func(d *dishonest) int64 {
		d.Clock.Move(30 * time.Second)
		d.goes(0, "probe", unanswered)
		d.goes(1, "probe", failed)
		return d.goes(2, "probe")
	}},
	{"probed-after-its-round", "broken", markedByBreaker, `marks it "open", and the record says "probe"`, func(d *dishonest) int64 {
		d.Clock.Move(30 * time.Second)
		d.goes(0, "probe", unanswered)
		d.Clock.Move(time.Minute)
		return d.goes(1, "probe")
	}},
	{"refused-though-closed", "spent", markedByBreaker, `marks it "", and the record says "open"`, func(d *dishonest) int64 {
		return d.goes(0, "open", unsent)
	}},
	{"released-while-open", "broken", markedByBreaker, `marks it "open", and the record says ""`, func(d *dishonest) int64 {
		_, by, yes := d.says(routertest.Intent{User: "ben", Roles: []string{"approver"}})
		return d.released(*d.held.Position, by, yes)
	}},
	{"refused-and-done", "broken", refusedUnsent, "its skill server refused it", func(d *dishonest) int64 {
		return d.goes(0, "open") + 1
	}},
}
