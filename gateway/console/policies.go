package console

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
)

// policiesPage has the policy in force, its refusals, and a file for trying a change.
type policiesPage struct {
	InForce struct {
		Digest   string `json:"digest"`
		Revision int64  `json:"revision"`
		Since    string `json:"since"`
		Refused  int64  `json:"refused"`
	}
	Shadow     *shadow // nil: there was none
	Denied     intentList
	Files      []string
	File, Text string
}

func (*Console) policies(q *request) (any, error) {
	var p policiesPage
	if err := q.get("/v1/policy", &p.InForce); err != nil {
		return nil, err
	}
	f := q.filter()
	if f["code"] == "" {
		f["code"] = string(intents.PolicyDenied)
	}
	var err error
	if p.Denied, err = q.intents(f); err != nil {
		return nil, err
	}
	if q.may(explains) == nil {
		var tree map[string]string
		if err := q.get(consoleapi.Path+"policy", &tree); err != nil {
			return nil, err
		}
		if err := q.get(consoleapi.Path+"shadow", &p.Shadow); err != nil {
			return nil, err
		}
		if p.Shadow != nil {
			slices.Reverse(p.Shadow.Differences)
			p.Shadow.Differences = p.Shadow.Differences[:min(len(p.Shadow.Differences), shadowShown)]
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

// shadowShown is how many differences of a shadow policy a page has.
const shadowShown = 100

// shadow is how the person's tenant would fare under the shadow policy (router.Shadow).
type shadow struct {
	Digest  string `json:"policy_digest"`
	Since   string `json:"since"`
	Until   string `json:"until"`
	Ended   string `json:"ended"`
	Dropped int64  `json:"dropped"`
	Tenants map[string]struct {
		Decided int64 `json:"decided"`
		Differ  int64 `json:"differ"`
		Failed  int64 `json:"failed"`
	} `json:"tenants"`
	Groups []struct {
		Type   string          `json:"type"`
		Rule   string          `json:"rule"`
		Before intents.Verdict `json:"before"`
		After  intents.Verdict `json:"after"`
		Count  int64           `json:"count"`
	} `json:"groups"`
	Differences []struct {
		IntentID string         `json:"intent_id"`
		Type     string         `json:"type"`
		At       string         `json:"at"`
		Before   shadowDecision `json:"before"`
		After    shadowDecision `json:"after"`
	} `json:"differences"`
}

type shadowDecision struct {
	Verdict     intents.Verdict `json:"verdict"`
	Rules       []string        `json:"rules"`
	Obligations []string        `json:"obligations"`
}

// Capabilities required by pages that read more than the API shows.
const (
	explains = "policy:explain"
	audits   = "audit:read"
)

// explain shows why a recorded intent was decided as it was.
func (*Console) explain(q *request) (any, error) {
	var p explanation
	err := q.get(consoleapi.Path+"explain/"+url.PathEscape(q.PathValue("id")), &p)
	return p, err
}

// explanation is the output of writ policy explain.
type explanation struct {
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
