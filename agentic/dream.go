package agentic

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents/catalog"
)

// What the dreaming agent is told of a session.
const (
	dreamTokens  = 8000
	dreamMoments = 20
)

// summed is how much of a moment the summary of its session has, in bytes.
const summed = 200

// dreams says whether the plan is of the dreaming agent, which nobody waits for.
func (d *drive) dreams() bool { return d.plan.Agent == agents.Dreaming }

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

// dreamt writes down what was dreamt: the moments with their edges, a moment that sums
// them up, and the memory of that in the session. All of it is under names that derive from
// the reply and the plan: after a crash in between the next driver writes the same again.
func (d *drive) dreamt(ctx context.Context, reply string) error {
	var found dream
	if !d.dreams() {
		return nil
	}
	if err := json.Unmarshal([]byte(reply), &found); err != nil || len(found.Moments) == 0 {
		return err
	}
	edges := map[string][]catalog.Edge{} // by the moment that they are written with: the first that knows them
	for _, m := range found.Moments {
		edges[d.momentKey(m.Key)] = nil
	}
	for _, e := range found.Affinities {
		e.From, e.To = d.momentKey(e.From), d.momentKey(e.To)
		if _, ok := edges[e.From]; ok {
			edges[e.From] = append(edges[e.From], e)
		} else if _, ok := edges[e.To]; ok {
			edges[e.To] = append(edges[e.To], e)
		}
	}
	chunk, of := catalog.Moment{Kind: catalog.KindChunk}, d.momentKey("chunk_"+d.turn.PlanID)
	for _, m := range found.Moments {
		key, text := d.momentKey(m.Key), m.Summary
		if len(m.Topics) > 0 {
			text += "\nTopics: " + strings.Join(m.Topics, ", ")
		}
		if len(m.Emotions) > 0 {
			text += "\nMood: " + strings.Join(m.Emotions, ", ")
		}
		if err := d.writeMoment(ctx, key, catalog.Moment{Text: text, Edges: edges[key]}); err != nil {
			return err
		}
		chunk.Text += fmt.Sprintf("%s: %s\n", key, cut(m.Summary, summed))
		chunk.Edges = append(chunk.Edges, catalog.Edge{From: of, To: key, Kind: "sums_up", Weight: 1})
	}
	if err := d.writeMoment(ctx, of, chunk); err != nil {
		return err
	}
	_, err := d.order(ctx, "session.append", catalog.SessionAppend{SessionID: d.turn.SessionID, Key: "dream:" + d.turn.PlanID, Turns: []catalog.Turn{
		{Role: catalog.Memory, Content: chunk.Text, Timestamp: d.plan.CreatedAt.UTC(), IntentSummary: of},
	}}, nil)
	return err
}

func (d *drive) writeMoment(ctx context.Context, key string, m catalog.Moment) error {
	_, name, _ := strings.Cut(key, ":")
	_, err := d.order(ctx, "write_memory", catalog.WriteMemory{Label: name, Scope: catalog.ScopeMoment, Data: compact(m)}, nil)
	return err
}

// momentKey is the whole key of a moment: one that has a colon already, or a name in the session.
func (d *drive) momentKey(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return d.turn.SessionID + ":" + cut(notLabel.ReplaceAllString(strings.ToLower(name), "_"), 64)
}
