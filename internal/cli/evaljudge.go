package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/eval"
	"aob.dev/writ/state/agents"
)

// judge is the model that judges recorded turns.
func (c *command) judge(name string) (model.Model, error) {
	cfg, err := config.Load("", c.std.Env)
	if err != nil {
		return nil, malformed(err)
	}
	all, err := newModels(cfg, "writ.yaml", c.std.Env, nil)
	if err != nil {
		return nil, err
	}
	m, there := all.named[cmp.Or(name, config.Strong)]
	switch {
	case !there:
		return nil, usage(fmt.Errorf("--judge: models of the configuration has no %q", name))
	case m.Name() == offline.Model{}.Name():
		return nil, errors.New("the offline model cannot judge: name a model under models in writ.yaml, or set WRIT_MODEL")
	}
	return m, nil
}

// judgeRecorded is eval --sample.
func (c *command) judgeRecorded(to client.Client, text, name string, least float64) (*eval.Report, error) {
	share, err := eval.Share(text)
	if err != nil {
		return nil, usage(fmt.Errorf("--sample: %w", err))
	}
	if err := checkMin(least); err != nil {
		return nil, err
	}
	by, err := c.judge(name)
	if err != nil {
		return nil, err
	}
	return c.sample(to, share, by, least)
}

// sample judges a share of the finished turns that the API key may read, newest first.
func (c *command) sample(to client.Client, share float64, by model.Model, least float64) (*eval.Report, error) {
	r := eval.NewReport(least)
	for after := ""; ; {
		var page catalog.PlanListResult
		if err := to.Get(c.Context(), "/agent/plans?limit=100&after="+url.QueryEscape(after), &page); err != nil {
			return nil, err
		}
		for _, p := range page.Plans {
			if !slices.Contains([]catalog.PlanStatus{catalog.PlanComplete, catalog.PlanFailed}, p.Status) || !eval.Sampled(p.PlanID, share) {
				continue
			}
			seen := eval.Outcome{PlanID: p.PlanID, Status: string(p.Status), Answer: p.Response}
			if p.Failure != nil {
				seen.Answer += p.Failure.Reason
			}
			if err := c.recorded(to, &seen); err != nil {
				return nil, err
			}
			wrong, err := judged(c.Context(), by, p.Task, seen)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.PlanID, err)
			}
			if res := r.AddJudged(cmp.Or(p.Agent, agents.Planner), p.Task, seen, wrong); !c.asJSON {
				fmt.Fprint(c.std.Err, resultText(res))
			}
		}
		if after = page.Cursor; after == "" {
			break
		}
	}
	if len(r.Results) == 0 {
		return nil, errors.New("no finished turn is among the sample: take a larger share, or an API key that may read more")
	}
	r.End()
	return r, nil
}

// judged asks a judge about one turn. An invalid reply is reported, and the turn does not pass.
func judged(ctx context.Context, by model.Model, message string, s eval.Outcome) ([]string, error) {
	turn, err := json.Marshal(struct {
		Message string `json:"message"`
		eval.Outcome
	}{message, s})
	if err != nil {
		return nil, err
	}
	exact := 0.0
	reply, err := by.Respond(ctx, model.Request{
		Agent: "judge", System: eval.Rubric, Messages: []model.Message{{Role: model.RoleUser, Text: string(turn)}},
		Tools:  []model.Tool{{Name: eval.VerdictTool, Description: "Says what is right and wrong with the turn.", Schema: eval.VerdictSchema}},
		Choice: model.ChoiceRequired, Temperature: &exact,
	}, nil)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(reply.Model, offline.Model{}.Name()) {
		return nil, errors.New("the offline model cannot judge: take it from the fallback of the judge")
	}
	for _, call := range reply.Calls {
		if call.Name == eval.VerdictTool {
			wrong, err := eval.Verdict([]byte(call.Arguments))
			if err != nil {
				wrong = []string{"the judge gave no verdict: " + err.Error()}
			}
			return wrong, nil
		}
	}
	return []string{"the judge gave no verdict"}, nil
}
