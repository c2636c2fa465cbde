package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/eval"
)

func evalCommand(c *command) {
	c.personFlags()
	least := c.Flags().Float64("min", 1, "the share of the cases of each set, and of each pair of agents, that must pass")
	c.answer = func(args []string) (answer, error) {
		if *least < 0 || *least > 1 {
			return answer{}, usage(fmt.Errorf("--min: %v is not from 0 to 1", *least))
		}
		if _, err := os.Stat(args[0]); err != nil {
			return answer{}, malformed(err)
		}
		sets, err := eval.Read(os.DirFS(args[0]))
		if err != nil {
			return answer{}, malformed(fmt.Errorf("%s: %w", args[0], err))
		}
		to, err := c.client()
		if err != nil {
			return answer{}, err
		}
		r := eval.NewReport(*least)
		for _, set := range sets {
			r.Begin(set)
			for _, one := range set.Cases {
				seen, err := c.ask(to, one)
				if err != nil {
					return answer{}, fmt.Errorf("%s:%d: %w", set.File, one.Line, err)
				}
				if res := r.Add(one, seen); !c.asJSON {
					fmt.Fprint(c.std.Err, resultText(res))
				}
			}
		}
		r.End()
		return answer{data: r, text: reportText(r), end: unless(r.OK, "below the threshold")}, nil
	}
}

// ask asks the messages of a case in a session of its own, and reads from the record what
// became of the last one.
func (c *command) ask(to client.Client, one eval.Case) (seen eval.Seen, err error) {
	body := map[string]string{}
	for _, turn := range append(slices.Clone(one.History), eval.Turn{Message: one.Message}) {
		body["message"] = turn.Message
		var said struct {
			PlanID    string `json:"plan_id"`
			SessionID string `json:"session_id"`
			Status    string `json:"status"`
			Response  string `json:"response"`
			Reason    string `json:"reason"`
		}
		if err := c.patiently(func() error { return to.Post(c.Context(), "/agent/run", body, &said) }); err != nil {
			return seen, err
		}
		seen = eval.Seen{PlanID: said.PlanID, Status: said.Status, Answer: said.Response + said.Reason}
		if said.Status == "executing" { // for longer than a request may take
			t := client.Turn{PlanID: said.PlanID}
			if err := to.Watch(c.Context(), said.PlanID, t.Take); err != nil {
				return seen, err
			}
			seen.Status, seen.Answer = t.Status, t.Response
		}
		body["session_id"] = said.SessionID
	}
	return seen, c.recorded(to, &seen)
}

// recorded adds what the record has of a plan: agents and calls of skills.
func (c *command) recorded(to client.Client, seen *eval.Seen) error {
	path := "/agent/plans/" + url.PathEscape(seen.PlanID)
	var plan catalog.PlanView
	if err := c.patiently(func() error { return to.Get(c.Context(), path, &plan) }); err != nil {
		return err
	}
	own := []string{agents.Planner, agents.Executor, agents.Composer}
	for _, u := range plan.Usage {
		if !slices.Contains(own, u.Agent) && !slices.Contains(seen.Agents, u.Agent) {
			seen.Agents = append(seen.Agents, u.Agent)
		}
	}
	var trace struct {
		Events []struct {
			Type    string          `json:"event_type"`
			Payload json.RawMessage `json:"payload"`
		} `json:"events"`
	}
	if err := c.patiently(func() error { return to.Get(c.Context(), path+"/trace", &trace) }); err != nil {
		return err
	}
	for _, e := range trace.Events {
		var called struct {
			Skill string `json:"skill_id"`
		}
		if e.Type == "skill.called" && json.Unmarshal(e.Payload, &called) == nil {
			seen.Tools = append(seen.Tools, called.Skill)
		}
	}
	return nil
}

// patiently waits where the rate limit says so: many cases are many requests.
func (c *command) patiently(request func() error) error {
	for {
		err := request()
		var p *client.Error
		if !errors.As(err, &p) || p.Code != intents.RateLimited || p.RetryAfter == 0 {
			return err
		}
		select {
		case <-time.After(p.RetryAfter):
		case <-c.Context().Done():
			return c.Context().Err()
		}
	}
}

// resultText is a case as soon as it is judged.
func resultText(r eval.Result) string {
	verdict := "ok"
	if !r.OK {
		verdict = "FAIL"
	}
	text := fmt.Sprintf("%-4s  %s:%d  %s\n", verdict, r.File, r.Line, oneLine(r.Message, 80))
	for _, w := range r.Wrong {
		text += "      " + oneLine(w, 200) + "\n"
	}
	if !r.OK {
		text += "      see: writ plan show " + printable(r.PlanID) + "\n"
	}
	return text
}

// reportText is the table of rates.
func reportText(r *eval.Report) string {
	return aligned(func(t io.Writer) {
		row := func(x eval.Rate) {
			least := ""
			if x.Min > x.Rate {
				least = fmt.Sprintf("below %.1f %%", 100*x.Min)
			}
			fmt.Fprintf(t, "%s\t%d of %d\t%.1f %%\t%s\n", printable(x.Name), x.Good, x.Cases, 100*x.Rate, least)
		}
		for _, x := range r.Sets {
			row(x)
		}
		for _, x := range r.Pairs {
			row(x)
		}
		row(r.All)
		if len(r.Missing) > 0 {
			fmt.Fprintf(t, "no case for\t%s\n", printable(strings.Join(r.Missing, ", ")))
		}
	})
}
