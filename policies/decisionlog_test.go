package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
)

const masks = `package system.log

mask contains "/input/actor/user_id"

mask contains {"op": "upsert", "path": "/input/intent/args", "value": {}} if input.input.intent.type == "skill.call"

mask contains "/result/deny/0/hint"

mask contains "/input/nowhere/at/all"
`

// logged decides an order under a tree and gives the events.
func logged(t *testing.T, s Source) (events []Event, raw string) {
	t.Helper()
	var out bytes.Buffer
	e := engine(t, s).Logged(NewDecisionLog(&out, map[string]string{"app": "writ"}))
	e, err := e.WithData(t.Context(), Data{}) // the next generation logs too
	if err != nil {
		t.Fatal(err)
	}
	order, facts := taskOrder(t)
	for range 2 { // a remembered decision is logged as well
		if _, err := e.DecideOrder(t.Context(), order, facts); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(out.String()) {
		var x Event
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if x.DecisionID != order.ID() || x.Timestamp != facts.Now {
			t.Errorf("%+v", x)
		}
		events = append(events, x)
	}
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	return events, out.String()
}

// TestDecisionLog: an event in OPA's form for each decision.
func TestDecisionLog(t *testing.T) {
	events, _ := logged(t, Embedded())
	x := events[1]
	if x.Path != "writ/authz/decision" || x.Bundles["writ"].Revision != Embedded().Digest() || x.Labels["app"] != "writ" ||
		x.Metrics["timer_server_handler_ns"] <= 0 || len(x.Erased)+len(x.Masked) != 0 {
		t.Errorf("%+v", x)
	}
	in, ok := x.Input.(map[string]any)
	if !ok || in["actor"] == nil || in["intent"] == nil || x.Result == nil {
		t.Errorf("input %v, result %v", x.Input, x.Result)
	}
}

// TestDecisionLogMasked: what data.system.log.mask names is not written, and
// what it reads costs no decision its place in the memo.
func TestDecisionLogMasked(t *testing.T) {
	s := Embedded()
	s["mask.rego"] = []byte(masks)
	events, raw := logged(t, s)
	order, _ := taskOrder(t)
	if user := order.Principal().UserID; strings.Contains(raw, `"`+user+`"`) {
		t.Errorf("the user is written: %s", raw)
	}
	x := events[0]
	if d := cmp.Diff([]string{"/input/actor/user_id"}, x.Erased); d != "" {
		t.Errorf("erased (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"/input/intent/args"}, x.Masked); d != "" {
		t.Errorf("masked (-want +got):\n%s", d)
	}
	reads := engine(t, s).ReadSet()
	reads.Paths = slices.DeleteFunc(reads.Paths, func(p []string) bool { return p[0] == "input" }) // no order has that
	if d := cmp.Diff(engine(t, Embedded()).ReadSet(), reads); d != "" {
		t.Errorf("the masks change what decides:\n%s", d)
	}
}

// TestDecisionLogFails: masks that are broken let nothing through, and a log
// that cannot be written never stops a decision.
func TestDecisionLogFails(t *testing.T) {
	for name, rule := range map[string]string{
		"operation": `mask contains {"op": "encrypt", "path": "/input"}`,
		"path":      `mask contains "/metrics"`,
		"kind":      `mask := 7`,
		"error":     `mask contains sprintf("%d/%d", [1, to_number(input.labels.app)])`,
	} {
		s := Embedded()
		s["mask.rego"] = []byte("package system.log\n\n" + rule + "\n")
		events, _ := logged(t, s)
		if x := events[0]; x.Input != nil || x.Result != nil || !cmp.Equal(x.Erased, []string{"/input", "/result"}) {
			t.Errorf("%s: %+v", name, x)
		}
	}
	l := NewDecisionLog(full{}, nil)
	order, facts := taskOrder(t)
	if _, err := engine(t, Embedded()).Logged(l).DecideOrder(t.Context(), order, facts); err != nil {
		t.Error(err)
	}
}

// TestMaskLeavesTheOrder: what is taken out of an event is still in the order.
func TestMaskLeavesTheOrder(t *testing.T) {
	s := Embedded()
	s["mask.rego"] = []byte("package system.log\n\nmask contains \"/input/intent/args/skill\"\n")
	var out bytes.Buffer
	order, facts := taskOrder(t)
	if _, err := engine(t, s).Logged(NewDecisionLog(&out, nil)).DecideOrder(t.Context(), order, facts); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"erased":["/input/intent/args/skill"]`) || order.StringArg("skill") != "outlet_list" {
		t.Errorf("the order's skill is %q after %s", order.StringArg("skill"), &out)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestMask: removing and putting, in objects and arrays.
func TestMask(t *testing.T) {
	for _, c := range []struct {
		rule maskRule
		want string
	}{
		{maskRule{Op: "remove", Path: "/input"}, `null`},
		{maskRule{Op: "remove", Path: "/input/a"}, `{"b":[1,{"c":2},3],"d/e":4}`},
		{maskRule{Op: "remove", Path: "/input/b/1/c"}, `{"a":0,"b":[1,{},3],"d/e":4}`},
		{maskRule{Op: "remove", Path: "/input/b/0"}, `{"a":0,"b":[{"c":2},3],"d/e":4}`},
		{maskRule{Op: "remove", Path: "/input/b/9"}, `{"a":0,"b":[1,{"c":2},3],"d/e":4}`},
		{maskRule{Op: "remove", Path: "/input/a/x"}, `{"a":0,"b":[1,{"c":2},3],"d/e":4}`},
		{maskRule{Op: "remove", Path: "/input/d%2Fe"}, `{"a":0,"b":[1,{"c":2},3]}`},
		{maskRule{Op: "upsert", Path: "/input/b/1", Value: "x"}, `{"a":0,"b":[1,"x",3],"d/e":4}`},
		{maskRule{Op: "upsert", Path: "/input/n/m", Value: "x"}, `{"a":0,"b":[1,{"c":2},3],"d/e":4,"n":{"m":"x"}}`},
		{maskRule{Op: "upsert", Path: "/input/a/m", Value: "x"}, `{"a":0,"b":[1,{"c":2},3],"d/e":4}`},
		{maskRule{Op: "upsert", Path: "/input", Value: 5}, `5`},
	} {
		x := Event{Input: object(`{"a":0,"b":[1,{"c":2},3],"d/e":4}`)}
		if err := c.rule.apply(&x); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(x.Input); err != nil || string(got) != c.want {
			t.Errorf("%s %s: %s, want %s", c.rule.Op, c.rule.Path, got, c.want)
		}
	}
}

// taskOrder is an order of a task with its facts.
func taskOrder(t *testing.T) (*intents.Envelope, intents.Facts) {
	t.Helper()
	return sealed(t, `{"skill":"outlet_list","input":{"n":1.5}}`, &intents.Context{PlanID: "plan_1"}), facts()
}
