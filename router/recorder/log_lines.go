package recorder

import (
	"context"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// writeLines adds the log of an intent that has ended: the lines of its outcome, and one with the
// reason of its failure. p is its plan, which must be its user's: another user's intent may name
// any.
func (r *Recorder) writeLines(s state.Intent, out intents.Outcome, p *catalog.PlanView, rec storage.Record) error {
	if p == nil || p.UserID != s.User {
		return nil
	}
	lines, err := rec.Lines()
	if err != nil {
		return err
	}
	line := catalog.LogLine{PlanID: p.PlanID, Step: s.Context.Step, Target: s.Recorded, Attempt: out.Attempt}
	if step := stepOf(p, line.Step); step != nil {
		line.NodeID = step.ID
	}
	for n, l := range lines {
		line.Line, line.N = l, n
		if err := r.writeLine(s, line, rec); err != nil {
			return err
		}
	}
	if out.Status == intents.Done || out.Reason == storage.ErasedReason {
		return nil
	}
	line.Line = intents.Line{At: rec.At.UTC(), Level: intents.LevelError, Source: intents.SourceWrit, Text: fmt.Sprintf("%s %s: %s: %s", s.Type, out.Status, out.Code, out.Reason)}
	line.N = catalog.LastLine
	return r.writeLine(s, line, rec)
}

func (r *Recorder) writeLine(s state.Intent, line catalog.LogLine, rec storage.Record) error {
	d := documentOfEvent(s, rec)
	d.EventID, d.PlanID, d.EventType, d.Payload, d.Seq = lineID(line), line.PlanID, catalog.EventLine, line, line.N
	return r.createEvent(d)
}

// lineID identifies a line by its intent, which has one outcome.
func lineID(l catalog.LogLine) string { return fmt.Sprintf("%012d-line-%03d", l.Target, l.N) }

// eraseLines removes the log of an intent that loses its result.
func (r *Recorder) eraseLines(ctx context.Context, of state.Intent, parts []string) error {
	if !slices.Contains(parts, catalog.ErasesResult) {
		return nil
	}
	for n := range intents.MaxLines + 2 {
		if n > intents.MaxLines {
			n = catalog.LastLine
		}
		if err := r.remove(ctx, of.Tenant, storage.IndexEvents, lineID(catalog.LogLine{Target: of.Recorded, N: n})); err != nil {
			return err
		}
	}
	return nil
}
