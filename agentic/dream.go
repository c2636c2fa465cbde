package agentic

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// Limits of what the dreaming agent receives of a session.
const (
	dreamTokens  = 8000
	dreamMoments = 20
)

// summed bounds the part of a moment in the summary of its session, in bytes.
const summed = 200

// dreams reports whether the plan is of the dreaming agent, whose answer nobody awaits.
func (r *Run) dreams() bool { return r.plan.Agent == agents.Dreaming }

// dream is the result of the dreaming agent.
type dream struct {
	Moments []struct {
		Key      string   `json:"key"`
		Summary  string   `json:"summary"`
		Topics   []string `json:"topics"`
		Emotions []string `json:"emotions"`
	} `json:"moments"`
	Affinities []catalog.Edge `json:"affinities"`
}

// dreamt writes the dream: the moments with their edges, a moment that summarizes them, and the
// memory of that in the session. All names derive from the reply and the plan: after a crash in
// between the next driver writes the same again.
func (r *Run) dreamt(ctx context.Context, reply string) error {
	var found dream
	if !r.dreams() {
		return nil
	}
	if err := json.Unmarshal([]byte(reply), &found); err != nil || len(found.Moments) == 0 {
		return err
	}
	edges := map[string][]catalog.Edge{} // by the moment with which they are written: the first one that has them
	for _, m := range found.Moments {
		edges[r.momentKey(m.Key)] = nil
	}
	for _, e := range found.Affinities {
		e.From, e.To = r.momentKey(e.From), r.momentKey(e.To)
		if _, ok := edges[e.From]; ok {
			edges[e.From] = append(edges[e.From], e)
		} else if _, ok := edges[e.To]; ok {
			edges[e.To] = append(edges[e.To], e)
		}
	}
	chunk, of := catalog.Moment{Kind: catalog.KindChunk}, r.momentKey("chunk_"+r.turn.PlanID)
	for _, m := range found.Moments {
		key, text := r.momentKey(m.Key), m.Summary
		if len(m.Topics) > 0 {
			text += "\nTopics: " + strings.Join(m.Topics, ", ")
		}
		if len(m.Emotions) > 0 {
			text += "\nMood: " + strings.Join(m.Emotions, ", ")
		}
		if err := r.writeMoment(ctx, key, catalog.Moment{Text: text, Edges: edges[key]}); err != nil {
			return err
		}
		chunk.Text += fmt.Sprintf("%s: %s\n", key, visible.Cut(m.Summary, summed))
		chunk.Edges = append(chunk.Edges, catalog.Edge{From: of, To: key, Kind: "sums_up", Weight: 1})
	}
	if err := r.writeMoment(ctx, of, chunk); err != nil {
		return err
	}
	_, err := r.submit(ctx, "session.append", catalog.SessionAppend{SessionID: r.turn.SessionID, Key: "dream:" + r.turn.PlanID, Turns: []catalog.Turn{
		{Role: catalog.Memory, Content: chunk.Text, Timestamp: r.plan.CreatedAt.UTC(), IntentSummary: of},
	}}, nil)
	return err
}

func (r *Run) writeMoment(ctx context.Context, key string, m catalog.Moment) error {
	_, name, _ := strings.Cut(key, ":")
	_, err := r.submit(ctx, "write_memory", catalog.WriteMemory{Label: name, Scope: catalog.ScopeMoment, Data: compact(m)}, nil)
	return err
}

// momentKey returns the full key of a moment: a key with a colon is used unchanged, others are
// names in the session.
func (r *Run) momentKey(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	name = notLabel.ReplaceAllString(strings.ToLower(name), "_") // ASCII
	return r.turn.SessionID + ":" + name[:min(len(name), 64)]
}
