package agentic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// Bounds of the session's part in the prompts of a turn, and of the answer's part in the session.
// The plan has all of it.
const (
	HistoryTokens  = 6000
	MostHistory    = 8000 // requested from a session
	HistoryMoments = 3
	maxRemembered  = 16 << 10 // bytes
)

// historyBudget is an eighth of the context of the turn's model.
func (c *conversation) historyBudget() int {
	return min(cmp.Or(model.ContextTokens(c.cfg.modelOf(&c.def))/8, HistoryTokens), MostHistory)
}

// readSession reads the parts of the prompts that come from the request and its session. over
// means that the turn has ended. The turn continues if a session cannot be read.
func (c *conversation) readSession(ctx context.Context) (over bool, err error) {
	if about := c.plan.Turn; about != nil {
		c.turn.About, c.turn.History = about, about.History
		if about.LeftOut > 0 {
			mark := catalog.ChatMessage{Role: catalog.SpeakerSystem, Content: fmt.Sprintf(leftOut, about.LeftOut)}
			c.turn.History = append([]catalog.ChatMessage{mark}, about.History...)
		}
		c.turn.Images = imagesOf(about.Images, c.images)
	}
	if c.turn.SessionID == "" || len(c.turn.History) > 0 {
		return false, nil
	}
	of := catalog.SessionRef{SessionID: c.turn.SessionID, TokenBudget: c.historyBudget(), Moments: HistoryMoments}
	if c.dreams() {
		of.TokenBudget, of.Moments = dreamTokens, dreamMoments
	}
	var s catalog.Session
	_, err = c.submit(ctx, "session.get", of, &s)
	var refused *IntentError
	switch {
	case errors.As(err, &refused):
		c.cfg.Log.WarnContext(ctx, "the session is not read", slog.String("plan_id", c.turn.PlanID), slog.String("error", err.Error()))
		return false, nil
	case err != nil:
		return false, err
	case s.Status != catalog.SessionActive && !c.plan.WorkflowComplete: // otherwise an earlier driver of the plan has closed it
		c.modelsOff, c.closed = true, true // no model could say it better
		return true, c.fail(ctx, "the session is closed", "this conversation is closed. Begin a new one.")
	}
	for _, t := range s.TurnHistory {
		c.turn.History = append(c.turn.History, catalog.ChatMessage{Role: t.Role, Content: t.Content})
	}
	c.turn.Before = s.Summary
	return false, nil
}

// imagesOf returns the images of a request as URLs. One that did not come with the dispatch is
// empty: no record has it.
func imagesOf(refs, came []string) []string {
	out := slices.Clone(refs)
	for i, ref := range refs {
		if intents.IsDigest(ref) {
			out[i] = ""
			if at := slices.IndexFunc(came, func(url string) bool { return intents.Digest([]byte(url)) == ref }); at >= 0 {
				out[i] = came[at]
			}
		}
	}
	return out
}

// remember appends the user's message and the answer to the session, and returns the answer that
// counts: the first one under the key. It runs before the plan is closed: a crash in between
// leaves the turn in the session and the plan open, and its next driver gets the answer that the
// session has.
func (c *conversation) remember(ctx context.Context, key, answer string, used *catalog.Usage) string {
	if c.turn.SessionID == "" || c.dreams() || c.closed {
		return answer
	}
	shown := visible.Cut(answer, maxRemembered)
	turns := []catalog.Turn{
		{Role: catalog.SpeakerUser, Content: c.turn.withReminderDue(c.task), Timestamp: c.plan.CreatedAt.UTC()}, {Role: catalog.SpeakerAgent, Content: shown, Timestamp: c.cfg.Now().UTC()},
	}
	if c.route != nil { // the classifier's findings
		turns[0].IntentSummary = visible.Cut(c.route.IntentSummary, maxSummary)
	}
	if c.turn.Reminder != "" && key == "turn:"+c.turn.TurnID { // once, even if the turn said something earlier
		turns = slices.Insert(turns, 1, catalog.Turn{Role: catalog.Observation, Content: c.turn.Reminder, Timestamp: turns[0].Timestamp})
	}
	var s catalog.Session
	_, err := c.submit(ctx, "session.append", catalog.SessionAppend{SessionID: c.turn.SessionID, Key: key, Summary: c.turnSummary(answer), Used: used, Turns: turns}, &s)
	if err != nil {
		c.cfg.Log.WarnContext(ctx, "the turn is not remembered", slog.String("plan_id", c.turn.PlanID), slog.String("error", err.Error()))
		return answer
	}
	if n := len(s.TurnHistory); n > 0 && s.TurnHistory[n-1].Role == catalog.SpeakerAgent && s.TurnHistory[n-1].Content != shown {
		return s.TurnHistory[n-1].Content
	}
	return answer
}

// rememberEnd is remember for the end of the turn, with its total usage.
func (c *conversation) rememberEnd(ctx context.Context, answer string) string {
	used := catalog.SumUsage(catalog.AddUsage(c.plan.Usage, c.used...))
	if used.Calls == 0 {
		return c.remember(ctx, "turn:"+c.turn.TurnID, answer, nil)
	}
	return c.remember(ctx, "turn:"+c.turn.TurnID, answer, &used)
}

// closeSession closes the session of a turn whose remote agent has completed the purpose of the
// session.
//
// Crash: before it the session has the turn and the plan is open, so the next driver closes both;
// after it, it finds the session closed by its own plan.
func (c *conversation) closeSession(ctx context.Context) {
	if c.turn.SessionID == "" || !c.plan.WorkflowComplete {
		return
	}
	if _, err := c.submit(ctx, "session.close", catalog.SessionClose{SessionID: c.turn.SessionID, Status: catalog.SessionCompleted}, nil); err != nil {
		c.cfg.Log.WarnContext(ctx, "the session is not closed", slog.String("plan_id", c.turn.PlanID), slog.String("error", err.Error()))
	}
}

// historyOf returns the messages of a conversation before the new one. Text that models or others
// wrote into the session is labelled and is not an instruction: it appears neither as the
// system's nor as the user's.
func historyOf(said []catalog.ChatMessage) []model.Message {
	roles := map[string]model.Role{catalog.SpeakerUser: model.RoleUser, catalog.SpeakerSystem: model.RoleSystem}
	labels := map[string]string{catalog.Memory: labelMemory, catalog.Observation: "[Observation] "}
	var out []model.Message
	for _, s := range said {
		label := labels[s.Role]
		out = append(out, model.Message{Role: cmp.Or(roles[s.Role], model.RoleAssistant), Text: label + strings.TrimPrefix(s.Content, label)})
	}
	return out
}

// labelMemory begins a model's summary of a session.
const labelMemory = "[Session context] "
