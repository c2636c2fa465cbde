package agentic

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/state/agents"
)

// serving is an agent whose tools have statuses.
const serving = `
name: seller
description: Sells.
tools:
  - {server: crm, name: list, status: searching_offers}
  - {server: crm, name: gone}
  - name: action
  - name: remind_me
status_events:
  searching_offers: {words: {en: Searching offers…, de: Ich suche Angebote…}}
  matching_receipt: {show: transform, words: {de: Ich suche die Quittung…}}
  looking_up_points_balance: {show: batch, words: {es: Buscando el saldo…}}
  looking_up_purchase_history: {show: suppress}
`

// inLocale gives the user of the plan of selling a locale and a time zone.
func inLocale(c *core, locale, zone string) {
	answerTransitions(c, catalog.PlanView{
		PlanID: "plan_1", Status: catalog.PlanExecuting, Task: "How many outlets are there?", Agent: "seller", PlanDigest: intents.Digest(nil),
		Turn: &catalog.TurnContext{Locale: locale, TimeZone: zone},
		Steps: []catalog.StepView{{Status: catalog.StepPending, PlanStep: catalog.PlanStep{
			Step: 1, Task: "seller", Skills: []string{"crm.list"}, ReturnSpec: catalog.ReturnSpec{Shape: "string"},
		}}},
	})
}

// workingFrames returns the statuses among frames.
func workingFrames(t *testing.T, frames []bus.TurnFrame) (out []bus.StatusData) {
	t.Helper()
	for _, f := range frames {
		if f.Kind == bus.FrameStatus {
			if d := dataOf[bus.StatusData](t, f); d.State == "working" || d.State == "calling" {
				out = append(out, d)
			}
		}
	}
	return out
}

// TestSlowTool: a tool that takes long shows words in the user's language within two seconds of
// its start: its own status, or the one for any tool.
func TestSlowTool(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ agent, words, event string }{
		"own status": {serving, "Ich suche Angebote…", "searching_offers"},
		"any tool":   {strings.Replace(serving, ", status: searching_offers", "", 1), "Ich arbeite noch daran…", stillWorking},
		"suppressed": {strings.Replace(serving, "status: searching_offers", "status: looking_up_purchase_history", 1), "Ich arbeite noch daran…", stillWorking},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCore(t)
			selling(c, x.agent)
			inLocale(c, "de_CH", "")
			frames := c.connect(natsserver.Frames)
			var after time.Duration
			c.on("skill.call", func(p placed) *intents.Answer { // it ends once its words are there
				began := time.Now()
				_ = frames.Frames(t.Context(), bus.Turn(theTurn.Tenant, theTurn.TurnID), 0, func(f bus.Frame) bool {
					after = time.Since(began)
					return !strings.Contains(string(f.Data), x.words) && after < patience
				})
				return done(catalog.SkillCallResult{Output: json.RawMessage(`[]`)})(p)
			})
			layer(c, says(map[string][]any{"seller": {call("crm_list", struct{}{}), "None."}}), "task", "manager")
			dispatchTurn(c)
			got := workingFrames(t, shown(c))
			got = slices.DeleteFunc(got, func(d bus.StatusData) bool { return d.State == "calling" })
			want := []bus.StatusData{{State: "working", Event: x.event, Message: x.words, Step: 1, PlanID: theTurn.PlanID}}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if after > 2*time.Second {
				t.Errorf("shown after %s", after)
			}
		})
	}
}

// TestStatuses: the manager forwards, transforms, batches and suppresses as the agent declares,
// and drops undeclared statuses, whatever a task sends.
func TestStatuses(t *testing.T) {
	c := newCore(t)
	agent, err := agents.Parse([]byte(serving))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	cfg := c.config(natsserver.Manager, nil)
	cfg.Now = func() time.Time { return now }
	d := newAgentRun(&conversation{Run: &Run{cfg: cfg, turn: theTurn, statuses: ratelimit.New(1, batchTime, ratelimit.Unshared(64), cfg.Now)}, def: *agent})
	d.turn.About = &catalog.TurnContext{Locale: "fr"}
	s := &catalog.StepView{PlanStep: catalog.PlanStep{Step: 1, Skills: []string{"crm.list"}}}
	balance := progress{Event: "looking_up_points_balance"}
	for _, p := range []progress{
		{Event: "searching_offers"},
		{Event: "searching_offers"},
		{Event: "matching_receipt"},
		balance, balance,
		{Event: "looking_up_purchase_history"},
		{Event: "Your card was charged."},
		{Event: "Pay here.", Agent: "billing", Ask: "1.0"},
		{Event: "still_working\n"},
		{Skill: "crm.list"},
	} {
		d.show(s, p)
	}
	now = now.Add(batchTime)
	balance.Agent, balance.Ask = "billing", "1.0" // an asked agent works for the plan's agent
	d.show(s, balance)
	d.frame(bus.FrameDone, bus.DoneData{})
	var got []string
	for _, f := range workingFrames(t, shown(c)) {
		got = append(got, f.State+"|"+f.Event+"|"+f.Message)
	}
	want := []string{
		"working|searching_offers|Searching offers…", "working|searching_offers|Searching offers…", "working||Ich suche die Quittung…",
		"working|looking_up_points_balance|Buscando el saldo…", "working|looking_up_points_balance|Buscando el saldo…",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestAction: an action is an intent, and then a frame; a plan whose agent has no such tool shows
// none.
func TestAction(t *testing.T) {
	c := newCore(t)
	selling(c, serving)
	inLocale(c, "", "")
	c.on("action", done(catalog.Ack{Accepted: true}))
	knows(c, "open_page")
	open := catalog.Action{Type: "open_page", Payload: json.RawMessage(`{"page":"/orders"}`)}
	m := says(map[string][]any{"seller": {call("action", map[string]any{"type": "two words"}), call("action", open), "It is open."}})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	var got []bus.ActionData
	for _, f := range shown(c) {
		if f.Kind == bus.FrameAction {
			got = append(got, dataOf[bus.ActionData](t, f))
		}
	}
	list := c.ofType("action")
	if len(list) != 1 {
		t.Fatalf("%d intents", len(list))
	}
	if d := cmp.Diff([]bus.ActionData{{Type: "open_page", Payload: open.Payload, IntentID: list[0].ID}}, got); d != "" {
		t.Error(d)
	}
	if said := results(m.requests("seller")[2]); len(said) != 2 || !strings.Contains(said[0], "/type") || said[1] != string(compact(actionShown)) {
		t.Errorf("the model was told %q", said)
	}
	if tool := offeredTool(m.requests("seller")[0], "action"); tool == nil || !strings.Contains(string(tool.Schema), `"enum":["open_page"]`) {
		t.Errorf("offered as %+v", tool)
	}
	silent := newCore(t)
	selling(silent, serving)
	m = says(map[string][]any{"seller": {"It is open."}})
	layer(silent, m, "task", "manager")
	dispatchTurn(silent)
	if shown(silent); offeredTool(m.requests("seller")[0], "action") != nil {
		t.Error("offered to a client that knows no action")
	}
	other := newCore(t)
	none := newAgentRun(&conversation{Run: &Run{cfg: other.config(natsserver.Manager, nil), turn: theTurn}})
	none.show(&catalog.StepView{}, progress{Action: &got[0]})
	none.frame(bus.FrameDone, bus.DoneData{})
	if frames := shown(other); len(frames) != 1 {
		t.Errorf("frames %v", kinds(t, frames))
	}
}

// TestRemindMe: the tool creates schedules from the model's text, in the user's time zone, and
// returns when they are due.
func TestRemindMe(t *testing.T) {
	c := newCore(t)
	selling(c, serving)
	inLocale(c, "", "Europe/Oslo")
	next := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	c.on("schedule.put", inTurn(done(catalog.ScheduleNext{ID: "s_1", Next: next}), done(catalog.ScheduleNext{ID: "s_2", Next: next}), refuse(intents.RBACForbidden, "no role gives schedules:write")))
	c.on("schedule.list", func(p placed) *intents.Answer {
		a := done(catalog.ScheduleCount{Schedules: 1})(p)
		a.Details = marshal(map[string]any{"schedules": []catalog.Schedule{{SchedulePut: catalog.SchedulePut{ID: "s_1", Input: "Look."}, Next: next}}})
		return a
	})
	c.on("schedule.delete", done(catalog.Ack{Accepted: true}))
	m := says(map[string][]any{"seller": {
		call("remind_me", remindArgs{Input: "Look.", When: "2027-03-28T02:30"}), // skipped when the clocks change
		call("remind_me", remindArgs{Input: "Look again.", When: " 0  9 * * mon-fri", TimeZone: "Asia/Tokyo"}),
		call("remind_me", remindArgs{Input: "Look.", When: "at tea time"}),
		call("remind_me", remindArgs{Input: "Look.", When: "2026-12-01T09:00", TimeZone: "Middle/Earth"}),
		call("remind_me", remindArgs{Input: "Never.", When: "2026-12-01T09:00:00+02:00"}),
		call("remind_me", remindArgs{List: true}),
		call("remind_me", remindArgs{Cancel: "s_1"}),
		"Done.",
	}})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	shown(c)
	var puts []catalog.SchedulePut
	for _, o := range c.ofType("schedule.put") {
		var a catalog.SchedulePut
		if err := json.Unmarshal(o.Args, &a); err != nil {
			t.Fatal(err)
		}
		puts = append(puts, a)
	}
	want := []catalog.SchedulePut{
		{Agent: "seller", Input: "Look.", TimeZone: "Europe/Oslo", At: "2027-03-28T03:00:00+02:00"},
		{Agent: "seller", Input: "Look again.", TimeZone: "Asia/Tokyo", Cron: "0 9 * * mon-fri"},
		{Agent: "seller", Input: "Never.", TimeZone: "Europe/Oslo", At: "2026-12-01T09:00:00+02:00"},
	}
	if d := cmp.Diff(want, puts); d != "" {
		t.Error(d)
	}
	all := m.requests("seller")
	said := results(all[len(all)-1])
	for i, part := range []string{`{"id":"s_1","next":"2026-12-01T09:00:00+01:00"}`, `"next":"2026-12-01T17:00:00+09:00"`, "neither a time", "there is none of this name", "RBAC_FORBIDDEN", `"input":"Look."`, `{"accepted":true}`} {
		if len(said) != 7 || !strings.Contains(said[i], part) {
			t.Errorf("result %d of %d: %v does not say %s", i, len(said), said, part)
		}
	}
}

// knows has the request declare types of actions.
func knows(c *core, types ...string) {
	claim := c.reply["plan.claim"]
	c.on("plan.claim", func(p placed) *intents.Answer {
		a := claim(p)
		var plan catalog.PlanView
		_ = json.Unmarshal(a.Outcome.Result, &plan)
		if plan.Turn == nil {
			plan.Turn = &catalog.TurnContext{}
		}
		plan.Turn.ActionTypes = types
		a.Outcome.Result = marshal(plan)
		return a
	})
}

func offeredTool(r model.Request, name string) *model.Tool {
	for i := range r.Tools {
		if r.Tools[i].Name == name {
			return &r.Tools[i]
		}
	}
	return nil
}

// TestRemindedOnce: reminders and actions of an earlier task are not set or shown again.
func TestRemindedOnce(t *testing.T) {
	next := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		typ          string
		args, result any
		told         any
		repeated     any
	}{
		{"schedule.put", catalog.SchedulePut{Agent: "seller", Input: "Look.", TimeZone: "UTC", At: "2026-12-01T09:00:00Z"}, catalog.ScheduleNext{ID: "s_1", Next: next}, catalog.ScheduleNext{ID: "s_1", Next: next}, call("remind_me", remindArgs{Input: "Look.", When: "2026-12-01T09:00"})},
		{"action", catalog.Action{Type: "open_page"}, catalog.Ack{Accepted: true}, actionShown, call("action", catalog.Action{Type: "open_page"})},
	} {
		t.Run(x.typ, func(t *testing.T) {
			c := newCore(t)
			selling(c, serving)
			inLocale(c, "", "")
			knows(c, "open_page")
			told := catalog.CallSummary{Step: 1, IntentID: intents.Digest([]byte(x.typ)), Call: "1.0", Type: x.typ, Status: "done"}
			c.on("transcript.get", done(catalog.TranscriptGetResult{Calls: []catalog.TranscriptCall{{CallSummary: told, Args: marshal(x.args), Code: intents.OK, Result: marshal(x.result)}}}))
			step := c.reply["step"]
			c.on("step", func(p placed) *intents.Answer {
				a := step(p)
				a.Details = marshal(catalog.PlanDetails{Calls: []catalog.CallSummary{told}})
				return a
			})
			m := says(map[string][]any{"seller": {x.repeated, "Done."}})
			layer(c, m, "task", "manager")
			dispatchTurn(c)
			frames := shown(c)
			if n := len(c.ofType(x.typ)); n != 0 {
				t.Errorf("signed %d times more", n)
			}
			if slices.ContainsFunc(frames, func(f bus.TurnFrame) bool { return f.Kind == bus.FrameAction }) {
				t.Error("shown once more")
			}
			first := m.requests("seller")[0].Messages
			if n := len(first); n < 2 || len(first[n-2].Calls) != 1 || first[n-1].Text != string(marshal(x.told)) {
				t.Errorf("the next task is not told: %+v", first)
			}
		})
	}
}
