package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
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

func evalCommand(c *command) {
	c.personFlags()
	least := c.minFlag()
	share := c.Flags().String("sample", "", "judge this share of the finished turns of the record instead, such as 1%")
	judge := c.Flags().String("judge", "", "with --sample: the model that judges, a name under models of the configuration (default strong)")
	c.answer = func(args []string) (answer, error) {
		if (len(args) == 1) == (*share != "") {
			return answer{}, usage(errors.New("name a directory of cases, or --sample"))
		}
		to, err := c.client()
		if err != nil {
			return answer{}, err
		}
		var r *eval.Report
		if *share == "" {
			r, err = c.evaluate(to, args[0], *least)
		} else {
			r, err = c.judgeRecorded(to, *share, *judge, *least)
		}
		if err != nil {
			return answer{}, err
		}
		return answer{data: r, text: reportText(r), end: unless(r.OK, "below the threshold")}, nil
	}
}

func (c *command) minFlag() *float64 {
	return c.Flags().Float64("min", 1, "the share of the cases of each set, and of each pair of agents, that must pass")
}

func checkMin(least float64) error {
	if least < 0 || least > 1 {
		return usage(fmt.Errorf("--min: %v is not from 0 to 1", least))
	}
	return nil
}

// evaluate runs the cases of a directory and prints the outcome of each.
func (c *command) evaluate(to client.Client, dir string, least float64) (*eval.Report, error) {
	if err := checkMin(least); err != nil {
		return nil, err
	}
	sets, err := eval.Read(os.DirFS(dir))
	if err != nil {
		return nil, malformed(fmt.Errorf("%s: %w", dir, err))
	}
	r := eval.NewReport(least)
	for _, set := range sets {
		r.Begin(set)
		for _, one := range set.Cases {
			seen, err := c.askCase(to, one)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", set.File, one.Message, err)
			}
			if res := r.Add(one, seen); !c.asJSON {
				fmt.Fprint(c.std.Err, render("judged", res))
			}
		}
	}
	r.End()
	return r, nil
}

// askCase sends the messages of a case in a session of its own, and reads the outcome of the last
// one.
func (c *command) askCase(to client.Client, one eval.Case) (seen eval.Outcome, err error) {
	body := map[string]string{"agent": one.Agent}
	for _, turn := range append(slices.Clone(one.History), eval.Turn{Message: one.Message}) {
		body["message"] = turn.Message
		var said struct {
			PlanID    string `json:"plan_id"`
			SessionID string `json:"session_id"`
			Status    string `json:"status"`
			Response  string `json:"response"`
			Reason    string `json:"reason"`
		}
		if err := to.Post(c.Context(), "/agent/run", body, &said); err != nil {
			return seen, err
		}
		seen = eval.Outcome{PlanID: said.PlanID, Status: said.Status, Answer: said.Response + said.Reason}
		if said.Status == "executing" { // for longer than a request may take
			t := client.Turn{PlanID: said.PlanID}
			if err := to.Watch(c.Context(), said.PlanID, "", t.Take); err != nil {
				return seen, err
			}
			seen.Status, seen.Answer = t.Status, t.Response
		}
		body["session_id"] = said.SessionID
	}
	return seen, c.recorded(to, &seen)
}

// recorded adds a plan's agents and skill calls from the record.
func (c *command) recorded(to client.Client, seen *eval.Outcome) error {
	path := "/agent/plans/" + url.PathEscape(seen.PlanID)
	var plan catalog.PlanView
	if err := to.Get(c.Context(), path, &plan); err != nil {
		return err
	}
	own := []string{agents.Planner, agents.Executor, agents.Composer}
	if slices.ContainsFunc(plan.Usage, func(u catalog.Usage) bool { return u.Agent != plan.Agent }) {
		own = append(own, plan.Agent) // it only asks the others
	}
	for _, u := range plan.Usage {
		if !slices.Contains(own, u.Agent) && !slices.Contains(seen.Agents, u.Agent) {
			seen.Agents = append(seen.Agents, u.Agent)
		}
	}
	var trace struct {
		Events []struct {
			Type    string `json:"event_type"`
			Payload struct {
				Skill string `json:"skill_id"`
			} `json:"payload"`
		} `json:"events"`
	}
	err := to.Get(c.Context(), path+"/trace", &trace)
	for _, e := range trace.Events {
		if e.Type == "skill.called" || e.Type == "skill.cached" {
			seen.Tools = append(seen.Tools, e.Payload.Skill)
		}
	}
	return err
}

// reportText is the table of rates.
func reportText(r *eval.Report) string {
	return render("evaluated.table", struct {
		Rates   []eval.Rate
		Missing []string
	}{append(slices.Concat(r.Sets, r.Pairs), r.All), r.Missing})
}

// judge is the model that judges recorded turns.
func (c *command) judge(name string) (model.Model, error) {
	cfg, err := config.Load("", c.std.Env)
	if err != nil {
		return nil, malformed(err)
	}
	all, err := newModels(cfg, "writ.yaml", c.std.Env, nil, nil)
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
			if !p.Status.Ended() || !eval.Sampled(p.PlanID, share) {
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
				fmt.Fprint(c.std.Err, render("judged", res))
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
