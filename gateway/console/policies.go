package console

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/office"
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

func (*Console) policies(q *request) (any, error) {
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
		var tree map[string]string
		if err := q.get(office.Path+"policy", &tree); err != nil {
			return nil, err
		}
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
func (*Console) explain(q *request) (any, error) {
	var p explained
	err := q.get(office.Path+"explain/"+url.PathEscape(q.PathValue("id")), &p)
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
	office.Backtest
	File string
	Diff []diffLine
}

// backtest decides the record of the tenant again with a changed file. Nothing is put in force.
func (*Console) backtest(q *request) (any, error) {
	file, text := q.PostFormValue("file"), lines(q.PostFormValue("text"))
	var tree map[string]string
	if err := q.get(office.Path+"policy", &tree); err != nil {
		return nil, err
	}
	p := tried{File: file, Diff: diff("in force/"+file, tree[file], "tried/"+file, text)}
	err := q.post(office.Path+"backtest", office.Trial{File: file, Text: text}, &p.Backtest)
	return p, err
}
