package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/monitor"
	"aob.dev/writ/internal/office"
)

// lines is a text of a form with the line ends of files.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// recordPage has a search, the last checkpoint, and who cosigns it.
type recordPage struct {
	List       orderList
	Checkpoint string
	Witnesses  []string
	Audits     bool // the person may export
}

func (c *Console) record(q *request) (any, error) {
	var p recordPage
	var err error
	if p.List, err = q.orders(q.filter()); err != nil {
		return nil, err
	}
	a, err := c.fetch(q.Context(), q.s.credentials, http.MethodGet, "/ledger/checkpoint", nil)
	if err != nil {
		return nil, err
	}
	p.Checkpoint, p.Witnesses, p.Audits = a.body.String(), c.Witnesses, q.may(audits) == nil
	return p, nil
}

// bundle is the tenant's record, for writ audit verify.
func (c *Console) bundle(q *request) (any, error) {
	a := &reply{header: http.Header{}, past: q.w}
	a.header.Set("Content-Disposition", `attachment; filename="`+q.s.Tenant+`.jsonl"`)
	if err := c.serve(q.Context(), q.s.credentials, http.MethodGet, office.Path+"bundle", nil, true, a); err != nil {
		return nil, err
	}
	return nil, errDone
}

// healthPage has the state of the process and of the one that follows the record, what models
// cost, and the figures of the four layers.
type healthPage struct {
	office.Health
	Figures     *monitor.Figures `json:"figures"` // nil: the person may not see the whole tenant
	Status, Bus string
	Usage       catalog.PlanUsageResult
}

// usageOf is the stretch of time whose usage the page shows, as of its figures.
const usageOf = time.Hour

func (c *Console) health(q *request) (any, error) {
	var d gateway.Deep
	if err := q.get("/health/deep", &d); err != nil {
		return nil, err
	}
	p := healthPage{Status: d.Status, Bus: d.Bus, Health: office.Health{Stores: d.Stores}} // those of the router come to them
	if err := q.get(office.Path+"health", &p); err != nil {
		return nil, err
	}
	var here office.Health
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
