package console

import (
	"encoding/json"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// policiesPage has the policy in force, what it refused, and a file to try another text of.
type policiesPage struct {
	InForce struct {
		Digest   string `json:"digest"`
		Revision int64  `json:"revision"`
		Since    string `json:"since"`
		Refused  int64  `json:"refused"`
	}
	Denied     orderList
	Files      []string
	File, Text string
}

func (c *Console) policies(q *request) (any, error) {
	var p policiesPage
	if err := q.get("/v1/policy", &p.InForce); err != nil {
		return nil, err
	}
	f := q.filter()
	if f.Code == "" {
		f.Code = string(intents.PolicyDenied)
	}
	var err error
	if p.Denied, err = q.orders(f); err != nil {
		return nil, err
	}
	if q.may(explains) == nil {
		tree := c.Office.Policy()
		p.Files = slices.Sorted(maps.Keys(tree))
		p.File = q.FormValue("file")
		if _, ok := tree[p.File]; !ok && len(p.Files) > 0 {
			p.File = p.Files[0]
		}
		p.Text = tree[p.File]
	}
	return p, nil
}

// Capabilities that pages need which read more than the API shows.
const (
	explains = "policy:explain"
	audits   = "audit:read"
)

// explain shows why a recorded order was decided as it was.
func (c *Console) explain(q *request) (any, error) {
	if err := q.may(explains); err != nil {
		return nil, err
	}
	a, err := q.answer(q.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if masks(a.Decision) {
		return nil, problem.New(intents.RBACForbidden, "", "a policy masks parts of the order, and an explanation would show them")
	}
	x, err := c.Office.Explain(q.Context(), a.IntentID)
	if err != nil {
		return nil, err
	}
	var p explained
	err = json.Unmarshal(x, &p)
	return p, err
}

// explained is an explanation, as writ policy explain gives it.
type explained struct {
	ID       string           `json:"intent_id"`
	Recorded intents.Decision `json:"recorded"`
	Policy   *struct {
		Verdict intents.Verdict `json:"verdict"`
		Digest  string          `json:"policy_digest"`
		Fired   []struct {
			Effect intents.Verdict `json:"effect"`
			ID     string          `json:"id"`
			Title  string          `json:"title"`
			Reason string          `json:"reason"`
			File   string          `json:"file"`
			Line   int             `json:"line"`
		} `json:"fired"`
		Input json.RawMessage `json:"input"`
	} `json:"policy"`
}

// tried is a backtest with what was tried.
type tried struct {
	Backtest
	File string
	Diff []diffLine
}

// backtest decides the record of the tenant again with a changed file. Nothing is put in force.
func (c *Console) backtest(q *request) (any, error) {
	for _, capability := range []string{explains, audits} {
		if err := q.may(capability); err != nil {
			return nil, err
		}
	}
	if !c.heavy.TryLock() {
		return nil, problem.New(intents.Overloaded, "", "another backtest runs")
	}
	defer c.heavy.Unlock()
	file, text := q.PostFormValue("file"), lines(q.PostFormValue("text"))
	was, ok := c.Office.Policy()[file]
	if !ok {
		return nil, problem.New(intents.NotFound, "/file", "the policy in force has no such file")
	}
	b, err := c.Office.Backtest(q.Context(), q.s.Tenant, file, text)
	return tried{b, file, diff("in force/"+file, was, "tried/"+file, text)}, err
}
