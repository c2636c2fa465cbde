package agentic

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// Bounds of what the prompts of a turn have of its session, and of what the session has
// of an answer. The plan has all of it.
const (
	HistoryTokens  = 6000
	MostHistory    = 8000 // that a session is asked for
	HistoryMoments = 3
	maxRemembered  = 16 << 10 // bytes
)

// historyBudget is an eighth of what the model of the turn takes.
func (d *drive) historyBudget() int {
	m := d.cfg.Model
	if a, err := definition(d.agent); err == nil {
		m = d.cfg.modelOf(a)
	}
	return min(cmp.Or(model.ContextTokens(m)/8, HistoryTokens), MostHistory)
}

// recall reads what the prompts of the turn take from its request and its session. over
// says that the turn has ended. A session that cannot be read is no hindrance.
func (d *drive) recall(ctx context.Context) (over bool, err error) {
	if d.plan.Turn != nil {
		d.turn.About, d.turn.History = d.plan.Turn, d.plan.Turn.History
	}
	if d.turn.SessionID == "" || len(d.turn.History) > 0 {
		return false, nil
	}
	of := catalog.SessionRef{SessionID: d.turn.SessionID, TokenBudget: d.historyBudget(), Moments: HistoryMoments}
	if d.dreams() {
		of.TokenBudget, of.Moments = dreamTokens, dreamMoments
	}
	var s catalog.Session
	_, err = d.order(ctx, "session.get", of, &s)
	var refused *OrderError
	switch {
	case errors.As(err, &refused):
		d.cfg.Log.WarnContext(ctx, "the session is not read", slog.String("plan_id", d.turn.PlanID), slog.String("error", err.Error()))
		return false, nil
	case err != nil:
		return false, err
	case s.Status != catalog.SessionActive:
		return true, d.fail(ctx, "the session is closed", "This conversation was closed. Begin a new one.")
	}
	for _, t := range s.TurnHistory {
		d.turn.History = append(d.turn.History, catalog.Said{Role: t.Role, Content: t.Content})
	}
	d.turn.Before = s.Did
	return false, nil
}

// remember appends the user's message and the answer to the session, and gives the answer
// that stands: the first one under the key. It comes before the plan is closed: a crash
// in between leaves the turn in the session and the plan open, and its next driver is
// given the answer that the session has.
func (d *drive) remember(ctx context.Context, key, answer string, used *catalog.Usage) string {
	if d.turn.SessionID == "" || d.dreams() {
		return answer
	}
	shown := cut(answer, maxRemembered)
	turns := []catalog.Turn{
		{Role: catalog.SaidByUser, Content: d.turn.said(d.task), Timestamp: d.plan.CreatedAt.UTC()}, {Role: catalog.SaidByAgent, Content: shown, Timestamp: d.cfg.Now().UTC()},
	}
	if d.given != nil { // what the classifier made of it
		turns[0].IntentSummary = cut(d.given.IntentSummary, maxSummary)
	}
	if d.turn.Reminder != "" && key == "turn:"+d.turn.TurnID { // once, whatever was said on the way
		turns = slices.Insert(turns, 1, catalog.Turn{Role: catalog.Observation, Content: d.turn.Reminder, Timestamp: turns[0].Timestamp})
	}
	var s catalog.Session
	_, err := d.order(ctx, "session.append", catalog.SessionAppend{SessionID: d.turn.SessionID, Key: key, Did: d.did(answer), Used: used, Turns: turns}, &s)
	if err != nil {
		d.cfg.Log.WarnContext(ctx, "the turn is not remembered", slog.String("plan_id", d.turn.PlanID), slog.String("error", err.Error()))
		return answer
	}
	if n := len(s.TurnHistory); n > 0 && s.TurnHistory[n-1].Role == catalog.SaidByAgent && s.TurnHistory[n-1].Content != shown {
		return s.TurnHistory[n-1].Content
	}
	return answer
}

// rememberEnd is remember for the end of the turn, with what all of it has used.
func (d *drive) rememberEnd(ctx context.Context, answer string) string {
	used := catalog.SumUsage(catalog.AddUsage(d.plan.Usage, d.used...))
	if used.Calls == 0 {
		return d.remember(ctx, "turn:"+d.turn.TurnID, answer, nil)
	}
	return d.remember(ctx, "turn:"+d.turn.TurnID, answer, &used)
}

// drives says whether this driver still has the plan. One that has lost it must not say
// in the session how the turn has ended.
func (d *drive) drives(ctx context.Context) bool {
	var got catalog.PlanGetResult
	_, err := d.order(ctx, "plan.get", catalog.PlanGet{PlanID: d.turn.PlanID}, &got)
	return err == nil && got.Plan.Epoch == d.epoch && got.Plan.CompletedAt == nil
}

// historyOf are the messages of a conversation before the new one. What models or others wrote down in
// the session is labelled, and nobody's instruction: it stands neither as the system's nor as the user's.
func historyOf(said []catalog.Said) []model.Message {
	roles := map[string]model.Role{catalog.SaidByUser: model.RoleUser, catalog.SaidBySystem: model.RoleSystem}
	labels := map[string]string{catalog.Memory: labelMemory, catalog.Observation: "[Observation] "}
	var out []model.Message
	for _, s := range said {
		label := labels[s.Role]
		out = append(out, model.Message{Role: cmp.Or(roles[s.Role], model.RoleAssistant), Text: label + strings.TrimPrefix(s.Content, label)})
	}
	return out
}

// labelMemory begins what a model has summed up of a session.
const labelMemory = "[Session context] "
