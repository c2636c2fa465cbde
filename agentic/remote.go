package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// A remote agent is run as any other, but its server thinks: the task asks no model. It
// seals one call, and what the server says is the reply.

// remoteMessage is what the task says to the server. Whose message it is, and what was said
// before, the executor adds from the grant and the session.
type remoteMessage struct {
	DisplayName string          `json:"display_name"`
	RawInput    string          `json:"raw_input"`
	Summary     string          `json:"intent_summary"`
	Entities    json.RawMessage `json:"entities"`
	Language    string          `json:"detected_language"`
}

// maxSummary bounds intent_summary, in bytes.
const maxSummary = 1000

// messageOf the task, with the defaults of what nobody has found out.
func (w *worker) messageOf() remoteMessage {
	about := catalog.TurnContext{}
	if w.req.Turn.About != nil {
		about = *w.req.Turn.About
	}
	language, _, _ := strings.Cut(strings.ReplaceAll(about.Locale, "_", "-"), "-")
	m := remoteMessage{
		DisplayName: cmp.Or(about.UserName, w.req.Turn.UserID), RawInput: w.req.UserTask,
		Summary: cut(w.req.UserTask, maxSummary), Entities: json.RawMessage(`{}`), Language: cmp.Or(language, "en"),
	}
	if r := w.req.Route; r != nil { // what the classifier has found out
		m.Summary, m.Language = cmp.Or(cut(r.IntentSummary, maxSummary), m.Summary), cmp.Or(r.Language, m.Language)
		if len(r.Entities) > 0 {
			m.Entities = compact(r.Entities)
		}
	}
	return m
}

// unavailableError says to the user that a remote agent has no answer. Why, is for the log.
type unavailableError struct{ said, why string }

func (e *unavailableError) Error() string { return e.said + ": " + e.why }

// countTurn counts a message that a remote agent got from a turn of its own: what another agent
// asked is counted there (ask). A message that waits for people has not been sent.
func (w *worker) countTurn(agent string, took time.Duration, err error) {
	failure := ""
	if refused := (*OrderError)(nil); errors.As(err, &refused) {
		switch code := refused.Answer.Code; {
		case code == intents.ApprovalRequired:
			return
		case code == intents.ExecutorTimeout:
			failure = "timeout"
		case noData(code) || code == intents.Indeterminate:
			failure = "failed"
		default:
			failure = "refused"
		}
	} else if err != nil {
		failure = "refused"
	}
	if w.req.Ask == "" {
		w.cfg.Asked(agent, took, took, failure)
	}
}

// relay has a remote agent answer. It gets the message once, however often the task is
// begun.
//
// Crash: before the call is sealed the next task makes it; behind that, it goes by what the
// record says of the call.
func (w *worker) relay(ctx context.Context, agent *agents.Agent) error {
	unavailable := func(code intents.Code, why string) error {
		said := cmp.Or(agent.DisplayName, agent.Name) + " is unavailable"
		if code == intents.Indeterminate {
			said += ", and may have got the message"
		}
		return &unavailableError{said, why}
	}
	var got catalog.SkillCallResult
	calls, err := w.transcript(ctx)
	if err != nil {
		return err
	}
	made := false
	for _, c := range calls {
		made = c.Code != intents.Abandoned
		switch {
		case !made: // the server was not asked
		case c.Status == taskHeld:
			return w.waits(c)
		case c.Status != taskDone:
			return unavailable(c.Code, cmp.Or(c.Reason, "an earlier task of the step asked it, and has no answer"))
		default:
			got = *decoded(c.Result, &catalog.SkillCallResult{})
		}
	}
	if !made {
		slow := time.AfterFunc(StatusAfter, func() { w.say(progress{Event: stillWorking}) })
		defer slow.Stop()
		args := catalog.SkillCall{Skill: agent.MessageSkill(), Input: compact(w.messageOf())}
		began := w.cfg.Now()
		_, err = w.order(atCall(ctx, "1.0"), "skill.call", args, &got)
		w.countTurn(agent.Name, w.cfg.Now().Sub(began), err)
	}
	if refused := (*OrderError)(nil); errors.As(err, &refused) && (noData(refused.Answer.Code) || refused.Answer.Code == intents.Indeterminate) {
		return unavailable(refused.Answer.Code, refused.Answer.Reason)
	} else if err != nil {
		return err
	}
	var answer struct {
		Content  string `json:"content"`
		Complete bool   `json:"workflow_complete"`
	}
	if w.reply = cut(guarded(strings.TrimSpace(decoded(got.Output, &answer).Content)), maxResponse); w.reply == "" {
		return unavailable(intents.Indeterminate, "its answer is not known")
	}
	w.complete = answer.Complete && w.req.Ask == "" && w.req.Revision == 0
	return nil
}
