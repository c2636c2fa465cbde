package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/storage"
)

// intentList is the answer of GET /v1/intents, newest first.
type intentList struct {
	Intents []catalog.IntentEntry `json:"intents"`
	Cursor  string                `json:"cursor,omitempty"` // of the next page, with the same parameters
}

// terms are the parameters that name a member of the index.
var terms = map[string]string{"type": "type", "code": "code", "verdict": "verdict", "plan_id": "plan_id", "user": "user_id", "skill": "skill"}

// parameter is the pattern of a term's value.
var parameter = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// list finds intents of the grant's tenant: those of its own user, or with audit:read of all. Intents that the bearer may not see are not listed.
func (v *visitor) list() (any, error) {
	if err := v.accepts("type", "code", "verdict", "plan_id", "user", "skill", "since", "until", "limit", "cursor"); err != nil {
		return nil, err
	}
	q := v.query()
	out := intentList{Intents: []catalog.IntentEntry{}}
	if v.line.Own = !v.Oversees(); v.line.Own {
		if u := q.Terms["user_id"]; u != nil && u[0] != v.Grant.Subject {
			return out, nil
		}
		q.Terms["user_id"] = []string{v.Grant.Subject}
	}
	ctx, cancel := context.WithTimeout(v.Request.Context(), indexWait)
	defer cancel()
	if err := v.current(); err != nil {
		return nil, err
	}
	page, err := v.s.cfg.Documents.Search(ctx, v.Grant.Tenant, storage.IndexIntents, q)
	if err != nil && q.After != "" && ctx.Err() == nil && !errors.Is(err, storage.ErrUnavailable) {
		return nil, problem.New(intents.SchemaInvalid, "", "cursor is of no such list")
	}
	switch {
	case errors.Is(err, storage.ErrUnavailable) || err != nil && ctx.Err() != nil:
		return nil, late("the index of intents does not answer")
	case err != nil:
		return nil, err
	}
	for _, d := range page.Documents {
		var e catalog.IntentEntry
		if err := json.Unmarshal(d.Body, &e); err != nil {
			return nil, err
		}
		out.Intents = append(out.Intents, e)
	}
	out.Cursor = page.Cursor
	return out, nil
}

// query is the query that the parameters of a list describe.
func (v *visitor) query() storage.Query {
	q := storage.Query{Terms: map[string][]string{}, Sort: "-position", Limit: defaultPage, After: v.Query("cursor")}
	for name, member := range terms {
		if value := v.Query(name); value != "" {
			q.Terms[member] = []string{value}
		}
	}
	if n, err := strconv.Atoi(v.Query("limit")); err == nil {
		q.Limit = n
	}
	if at := (storage.Range{GTE: v.Query("since"), LTE: v.Query("until")}); at != (storage.Range{}) {
		q.Ranges = map[string]storage.Range{"at": at}
	}
	return q
}

const (
	defaultPage = 100
	maxCursor   = 1024 // bytes
)

// values reports what each parameter of a list accepts.
type values struct {
	has  func(value string) bool
	says string // to people
}

// accepted are the values of the parameters of lists.
var accepted = map[string]values{
	"status":       oneOf(catalog.PlanPending, catalog.PlanPlanning, catalog.PlanExecuting, catalog.PlanReplanning, catalog.PlanComplete, catalog.PlanFailed, catalog.PlanNeedsInput),
	"kind":         oneOf(catalog.KindAgent, catalog.KindWorkflow),
	"workflow_id":  names,
	"name":         names,
	"runs":         boolean,
	"session":      boolean,
	"by_day":       boolean,
	"whole_tenant": boolean,
	"since":        moment,
	"until":        moment,
	"limit":        {regexp.MustCompile(`^([1-9][0-9]?|100)$`).MatchString, "must be 1 to 100"},
	"after":        cursor,
	"type":         names,
	"code":         names,
	"verdict":      names,
	"plan_id":      names,
	"step":         {regexp.MustCompile(`^[1-9][0-9]{0,3}$`).MatchString, "must be the number of a step"},
	"user":         names,
	"skill":        skills,
	"cursor":       cursor,
}

// ofIntents accepts longer pages of the list of intents, which has no documents.
var ofIntents = values{regexp.MustCompile(`^([1-9][0-9]{0,2}|1000)$`).MatchString, "must be 1 to 1000"}

var (
	boolean = oneOf("true", "false")
	cursor  = values{func(v string) bool { return v != "" && len(v) <= maxCursor }, "must be the cursor of an earlier page"}
	names   = values{parameter.MatchString, "must have up to 64 letters, digits, _, . and -"}
	skills  = values{regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`).MatchString, "must be the name of a skill, up to 128 letters, digits, _, ., / and -"}
	moment  = values{func(v string) bool {
		_, err := time.Parse(time.RFC3339Nano, strings.ToUpper(v))
		return err == nil
	}, "must be a time as 2026-01-31T10:00:00Z"}
)

func oneOf[S ~string](all ...S) values {
	quoted := make([]string, len(all))
	for i, v := range all {
		quoted[i] = `"` + string(v) + `"`
	}
	return values{func(v string) bool { return slices.Contains(all, S(v)) }, "must be one of " + strings.Join(quoted, ", ")}
}

// accepts refuses parameters that the route does not have, and values that they cannot have.
func (v *visitor) accepts(own ...string) error {
	for name, given := range v.Request.URL.Query() {
		pointer, takes := "", accepted[name]
		if takes.has != nil {
			pointer = "/" + name
		}
		if name == "limit" && slices.Contains(own, "verdict") {
			takes = ofIntents
		}
		switch {
		case !slices.Contains(own, name):
			return problem.New(intents.SchemaInvalid, pointer, "there is no such parameter here; there are: "+strings.Join(own, ", "))
		case len(given) != 1:
			return problem.New(intents.SchemaInvalid, pointer, "the parameter comes twice")
		case !takes.has(given[0]):
			return problem.New(intents.SchemaInvalid, pointer, takes.says)
		}
	}
	return nil
}
