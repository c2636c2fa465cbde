package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
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
	Facets     []facet
	Total      int    // of what the search finds, up to maxCounted
	More       bool   // it finds more
	Export     string // address of all that it finds
	Checkpoint string
	Witnesses  []string
	Audits     bool // the person may export
}

func (c *Console) record(q *request) (any, error) {
	var p recordPage
	var err error
	f := q.filter()
	if p.List, err = q.intents(f); err != nil {
		return nil, err
	}
	var all intentList
	if err := q.get("/v1/intents?"+f.with("limit", strconv.Itoa(maxCounted)).Encode(), &all); err != nil {
		return nil, err
	}
	p.Facets, p.Total, p.More, p.Export = facets(f, all.Intents, q.c.Now()), len(all.Intents), all.Cursor != "", "record/intents?"+f.with().Encode()
	a, err := c.fetch(q.Context(), q.s.credentials, http.MethodGet, "/ledger/checkpoint", nil)
	if err != nil {
		return nil, err
	}
	p.Checkpoint, p.Witnesses, p.Audits = a.Body.String(), c.Witnesses, q.may(audits) == nil
	return p, nil
}

// maxCounted is how many intents are counted for a page, the newest ones.
const maxCounted = 1000

// facet is a parameter of the search with values that narrow it, or that take it back.
type facet struct {
	Name   string
	Values []choice
}

type choice struct {
	Text  string
	Count int    // 0: it is not counted
	Link  string // relative to the page
	On    bool
}

// maxChoices bounds the values of a facet, the most frequent first.
const maxChoices = 8

// facets of what a search finds.
func facets(f filter, found []entry, now time.Time) (out []facet) {
	times := facet{Name: "Time"}
	for _, t := range []struct {
		text  string
		since time.Time
	}{{"last hour", now.Add(-time.Hour)}, {"today (UTC)", now.UTC().Truncate(24 * time.Hour)}, {"7 days", now.AddDate(0, 0, -7)}, {"30 days", now.AddDate(0, 0, -30)}} {
		times.Values = append(times.Values, choice{Text: t.text, Link: "?" + f.with("since", intents.FormatTime(t.since), "until", "").Encode()})
	}
	if f["since"] != "" || f["until"] != "" {
		times.Values = append(times.Values, choice{Text: "any time", Link: "?" + f.with("since", "", "until", "").Encode()})
	}
	out = append(out, times)
	for _, by := range []struct {
		text, name string
		of         func(entry) string
	}{
		{"Type", "type", func(e entry) string { return e.Type }},
		{"Verdict", "verdict", func(e entry) string { return e.Verdict }},
		{"Code", "code", func(e entry) string { return e.Code }},
		{"Skill", "skill", func(e entry) string { return e.Skill }},
		{"User", "user", func(e entry) string { return e.UserID }},
	} {
		counts := map[string]int{}
		for _, e := range found {
			if v := by.of(e); v != "" {
				counts[v]++
			}
		}
		x := facet{Name: by.text}
		for v, n := range counts {
			c := choice{Text: v, Count: n, Link: "?" + f.with(by.name, v).Encode()}
			if c.On = f[by.name] == v; c.On {
				c.Link = "?" + f.with(by.name, "").Encode()
			}
			x.Values = append(x.Values, c)
		}
		slices.SortFunc(x.Values, func(a, b choice) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Text, b.Text)) })
		x.Values = x.Values[:min(len(x.Values), maxChoices)]
		if len(x.Values) > 0 {
			out = append(out, x)
		}
	}
	return out
}

// maxExport bounds the intents of an export; its last line says if there are more.
const maxExport = 100_000

// export has the intents that a search finds, newest first, as lines of JSON.
func (c *Console) export(q *request) (any, error) {
	leave, err := q.stream()
	if err != nil {
		return nil, err
	}
	defer leave()
	f, page := q.filter(), struct {
		Intents []json.RawMessage
		Cursor  string
	}{}
	for n := 0; ; {
		at := page.Cursor
		page.Intents, page.Cursor = nil, ""
		err := q.get("/v1/intents?"+f.with("limit", strconv.Itoa(maxCounted), "cursor", at).Encode(), &page)
		switch {
		case err != nil && n == 0:
			return nil, err
		case err != nil:
			panic(http.ErrAbortHandler) // a part must not look like the whole
		case n == 0:
			q.w.Header().Set("Content-Type", "application/jsonl")
			q.w.Header().Set("Content-Disposition", `attachment; filename="`+q.s.Tenant+`-intents.jsonl"`)
		}
		n += len(page.Intents)
		full := page.Cursor != "" && n >= maxExport
		if full {
			page.Intents = append(page.Intents, json.RawMessage(`{"more":true}`))
		}
		for _, line := range page.Intents {
			if _, err := q.w.Write(append(line, '\n')); err != nil {
				return nil, errDone
			}
		}
		if full || page.Cursor == "" {
			return nil, errDone
		}
	}
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
	Usage       *catalog.PlanUsageResult // nil: not asked for, since a store adds it up
}

// usageOf is the period of the usage on the page.
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
	if q.FormValue("usage") == "" {
		return p, nil
	}
	body := map[string]any{"mode": "SQL", "query": "usage", "since": intents.FormatTime(time.Now().Add(-usageOf))}
	if p.Figures != nil {
		body["whole_tenant"] = true
	}
	err := q.post("/query/", body, &p.Usage)
	return p, err
}
