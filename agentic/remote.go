package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// A remote agent runs as any other, but its server does the thinking: the task asks no model. It
// signs one call, and the server's answer is the reply.

// remoteMessage is the task's message to the server. The executor adds its user and the history
// from the grant and the session.
type remoteMessage struct {
	DisplayName string          `json:"display_name"`
	RawInput    string          `json:"raw_input"`
	Summary     string          `json:"intent_summary"`
	Entities    json.RawMessage `json:"entities"`
	Language    string          `json:"detected_language"`
}

// maxSummary bounds intent_summary, in bytes.
const maxSummary = 1000

// messageOf returns the message of the task, with defaults for unknown members.
func (w *worker) messageOf() remoteMessage {
	about := catalog.TurnContext{}
	if w.req.Turn.About != nil {
		about = *w.req.Turn.About
	}
	language, _, _ := strings.Cut(strings.ReplaceAll(about.Locale, "_", "-"), "-")
	m := remoteMessage{
		DisplayName: cmp.Or(w.req.Turn.Transient.UserName, w.req.Turn.UserID), RawInput: w.req.UserTask,
		Summary: visible.Cut(w.req.UserTask, maxSummary), Entities: json.RawMessage(`{}`), Language: cmp.Or(language, "en"),
	}
	if r := w.req.Route; r != nil { // the classifier's findings
		m.Summary, m.Language = cmp.Or(visible.Cut(r.IntentSummary, maxSummary), m.Summary), cmp.Or(r.Language, m.Language)
		if len(r.Entities) > 0 {
			m.Entities = compact(r.Entities)
		}
	}
	return m
}

// unavailableError tells the user that a remote agent has no answer. The cause is for the log.
type unavailableError struct{ message, why string }

func (e *unavailableError) Error() string { return e.message + ": " + e.why }

// countTurn counts a message to a remote agent in a turn of its own; a request by another agent
// is counted in ask. A message that waits for approval has not been sent.
func (w *worker) countTurn(agent string, took time.Duration, err error) {
	failure := ""
	switch code := codeOf(err); {
	case err == nil:
	case code == intents.ApprovalRequired:
		return
	case code == intents.ExecutorTimeout:
		failure = "timeout"
	case noData(code) || code == intents.Indeterminate:
		failure = "failed"
	default:
		failure = "refused"
	}
	if w.req.Ask == "" {
		w.cfg.CountAsk(agent, took, took, failure)
	}
}

// relay has a remote agent answer. The agent receives the message once, however often the task is
// begun.
//
// Crash: before the call is signed the next task makes it; after it, the next task uses the
// recorded outcome of the call.
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
		case c.Status == taskPendingApproval:
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
		_, err = w.submit(atCall(ctx, "1.0"), "skill.call", args, &got)
		w.countTurn(agent.Name, w.cfg.Now().Sub(began), err)
	}
	if refused := (*IntentError)(nil); errors.As(err, &refused) && (noData(refused.Answer.Code) || refused.Answer.Code == intents.Indeterminate) {
		return unavailable(refused.Answer.Code, refused.Answer.Reason)
	} else if err != nil {
		return err
	}
	var answer struct {
		Content  string `json:"content"`
		Complete bool   `json:"workflow_complete"`
	}
	if w.reply = visible.Cut(guarded(strings.TrimSpace(decoded(got.Output, &answer).Content)), maxResponse); w.reply == "" {
		return unavailable(intents.Indeterminate, "its answer is not known")
	}
	w.complete = answer.Complete && w.req.Ask == "" && w.req.Revision == 0
	return nil
}
