package console

import (
	"net/http"
	"slices"
	"time"

	"aob.dev/writ/gateway"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/monitor"
)

// recordPage has a search, the last checkpoint, and its witnesses.
type recordPage struct {
	List       intentList
	Checkpoint string
	Witnesses  []string
	Audits     bool // the person may export
}

func (c *Console) record(q *request) (any, error) {
	var p recordPage
	var err error
	if p.List, err = q.intents(q.filter()); err != nil {
		return nil, err
	}
	a, err := c.fetch(q.Context(), q.s.credentials, http.MethodGet, "/ledger/checkpoint", nil)
	if err != nil {
		return nil, err
	}
	p.Checkpoint, p.Witnesses, p.Audits = a.Body.String(), c.Witnesses, q.may(audits) == nil
	return p, nil
}

// bundle is the tenant's record, for writ audit verify.
func (c *Console) bundle(q *request) (any, error) {
	a := edge.Pass(q.w, func(status int, _ http.Header) bool { return status >= http.StatusBadRequest })
	a.Header().Set("Content-Disposition", `attachment; filename="`+q.s.Tenant+`.jsonl"`)
	if err := c.serve(q.Context(), q.s.credentials, http.MethodGet, consoleapi.Path+"bundle", nil, a); err != nil {
		return nil, err
	}
	return nil, errDone
}

// healthPage has the state of this process and of the one that follows the record, the cost of
// models, and the figures of the four layers.
type healthPage struct {
	consoleapi.Health
	Figures     *monitor.Figures `json:"figures"` // nil: the person may not see the whole tenant
	Status, Bus string
	Usage       catalog.PlanUsageResult
}

// usageOf is the period of the usage and figures on the page.
const usageOf = time.Hour

func (c *Console) health(q *request) (any, error) {
	var d gateway.Deep
	if err := q.get("/health/deep", &d); err != nil {
		return nil, err
	}
	p := healthPage{Status: d.Status, Bus: d.Bus, Health: consoleapi.Health{Stores: d.Stores}} // the router's stores are added to them
	if err := q.get(consoleapi.Path+"health", &p); err != nil {
		return nil, err
	}
	var here consoleapi.Health
	if err := q.get("/readyz", &here); err != nil {
		return nil, err
	}
	for _, x := range here.Conditions {
		if !slices.Contains(p.Conditions, x) {
			p.Conditions = append(p.Conditions, x)
		}
	}
	body := map[string]any{"mode": "SQL", "query": "usage", "since": intents.FormatTime(time.Now().Add(-usageOf))}
	if p.Figures != nil {
		body["whole_tenant"] = true
	}
	err := q.post("/query/", body, &p.Usage)
	return p, err
}
