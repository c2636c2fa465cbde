package agentic

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// TestAgentMessages: the reply of an agent reaches the user while it is written, guarded; text
// before a call is withdrawn.
func TestAgentMessages(t *testing.T) {
	c := newCore(t)
	selling(c, seller)
	long := strings.Repeat("There are two. ", 40)
	other := &chatty{says(map[string][]any{"seller": {call("crm_list", struct{}{}), long + "It failed with RBAC_FORBIDDEN."}}), strings.Repeat("I am looking. ", 40)}
	cfg := c.config("task", says(nil))
	now := cfg.Now
	var asked atomic.Int64
	cfg.Now = func() time.Time { return now().Add(time.Duration(asked.Add(1)) * tokenTime) } // so that pieces are shown at once
	cfg.Models = map[string]model.Model{"small": other}
	c.serve("task", ignoring(NewTasks(cfg).Serve))
	c.serve("manager", ignoring(NewManager(c.config("manager", says(nil))).Serve))
	dispatchTurn(c)
	var text string
	withdrawn, calls := 0, 0
	for _, f := range shown(c) {
		switch f.Kind {
		case bus.FrameToken:
			d := dataOf[bus.ContentData](t, f)
			if d.Reset {
				if !strings.HasPrefix(text, "I am looking.") {
					t.Errorf("withdrawn %q", text)
				}
				text = ""
				withdrawn++
			}
			text += d.Text
		case bus.FrameStatus:
			switch dataOf[bus.StatusData](t, f).State {
			case "calling":
				calls++
			case "step_done":
				if !strings.HasSuffix(text, "the actor lacks the capability.") {
					t.Errorf("done after %q", text)
				}
			}
		case bus.FrameAnswer:
			if got := dataOf[bus.AnswerData](t, f).Response; got != text || !strings.HasSuffix(got, "the actor lacks the capability.") {
				t.Errorf("answer %q, shown %q", got, text)
			}
		default:
		}
	}
	if withdrawn != 1 || calls != 1 || text == "" {
		t.Errorf("withdrawn %d times, %d calls, text %q", withdrawn, calls, text)
	}
	if f := finished(c); f.Reply != text {
		t.Errorf("reply %q", f.Reply)
	}
}

// chatty is a model that writes text before its calls.
type chatty struct {
	*script
	before string
}

func (m *chatty) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	reply, err := m.script.Respond(ctx, req, on)
	if err == nil && len(reply.Calls) > 0 {
		reply.Text = m.before
		for _, half := range []string{m.before[:300], m.before[300:]} {
			on(model.Event{Text: half})
		}
	}
	return reply, err
}

// TestAgentMessageHeld: what an agent says before calls of which one waits is not the text of the
// turn: it has not seen what becomes of them.
func TestAgentMessageHeld(t *testing.T) {
	c := newCore(t)
	selling(c, seller)
	c.on("skill.call", refuse(intents.ApprovalRequired, "ask ben"))
	m := says(map[string][]any{"seller": {call("crm_list", struct{}{})}})
	cfg := c.config("task", says(nil))
	cfg.Models = map[string]model.Model{"small": &chatty{m, strings.Repeat("I have sent it. ", 40)}}
	c.serve("task", ignoring(NewTasks(cfg).Serve))
	c.serve("manager", ignoring(NewManager(c.config("manager", says(nil))).Serve))
	dispatchTurn(c)
	text := ""
	frames := shown(c)
	for _, f := range frames {
		if f.Kind != bus.FrameToken {
			continue
		}
		d := dataOf[bus.ContentData](t, f)
		if d.Reset {
			text = ""
		}
		text += d.Text
	}
	got := dataOf[bus.PendingApprovalData](t, frames[len(frames)-1])
	if text != "" || got.Text != "This waits for approval: ask ben\n\nWaiting for approval (1):\n- crm_list {}" || len(m.requests("seller")) != 1 {
		t.Errorf("shown %q, held with %q", text, got.Text)
	}
}
