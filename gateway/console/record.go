package console

import (
	"log/slog"
	"net/http"
	"strings"

	"aob.dev/writ/gateway"
	"aob.dev/writ/intents/catalog"
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
	p.Checkpoint, p.Witnesses, p.Audits = a.body.String(), c.Office.Witnesses(), q.may(audits) == nil
	return p, nil
}

// bundle is the tenant's record, for writ audit verify.
func (c *Console) bundle(q *request) (any, error) {
	if err := q.may(audits); err != nil {
		return nil, err
	}
	q.w.Header().Set("Content-Type", "application/jsonl")
	q.w.Header().Set("Content-Disposition", `attachment; filename="`+q.s.Tenant+`.jsonl"`)
	if err := c.Office.Bundle(q.Context(), q.w, q.s.Tenant); err != nil {
		c.Log.WarnContext(q.Context(), "console bundle", slog.String("error", err.Error()))
		panic(http.ErrAbortHandler) // a part must not look like the whole
	}
	return nil, errDone
}

// healthPage has the state of the process, and what models cost.
type healthPage struct {
	gateway.Deep
	Conditions []condition
	Usage      catalog.PlanUsageResult
	Whole      bool // of the tenant, not of the person alone
}

type condition struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Do     string `json:"do"`
}

func (c *Console) health(q *request) (any, error) {
	var p healthPage
	if err := q.get("/health/deep", &p.Deep); err != nil {
		return nil, err
	}
	var ready struct {
		Conditions []condition `json:"conditions"`
	}
	if err := q.get("/readyz", &ready); err != nil {
		return nil, err
	}
	p.Conditions, p.Whole = ready.Conditions, q.may(audits) == nil
	body := map[string]any{"mode": "SQL", "query": "usage"}
	if p.Whole {
		body["whole_tenant"] = true
	}
	err := q.post("/query/", body, &p.Usage)
	return p, err
}
