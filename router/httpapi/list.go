package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/storage"
)

// intentList is the answer of GET /v1/intents, newest first.
type intentList struct {
	Intents []recorder.Entry `json:"intents"`
	Cursor  string           `json:"cursor,omitempty"` // of the next page, with the same parameters
}

// terms are the parameters that name a member of the index.
var terms = map[string]string{"type": "type", "code": "code", "verdict": "verdict", "plan_id": "plan_id", "user": "user_id"}

// parameters of a list.
var parameters = []string{"type", "code", "verdict", "plan_id", "user", "since", "until", "limit", "cursor"}

// parameter is the pattern of a term's value.
var parameter = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// list finds intents of the grant's tenant: those of its own user, or with audit:read of all. Intents that the bearer may not see are not listed.
func (v *visitor) list() (any, error) {
	q, err := query(v.Context)
	if err != nil {
		return nil, err
	}
	out := intentList{Intents: []recorder.Entry{}}
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
		var e recorder.Entry
		if err := json.Unmarshal(d.Body, &e); err != nil {
			return nil, err
		}
		out.Intents = append(out.Intents, e)
	}
	out.Cursor = page.Cursor
	return out, nil
}

// query reads the parameters of a list.
func query(c *gin.Context) (storage.Query, error) {
	q := storage.Query{Terms: map[string][]string{}, Sort: "-position", Limit: defaultPage}
	var at storage.Range
	for name, values := range c.Request.URL.Query() {
		if !slices.Contains(parameters, name) || len(values) != 1 {
			return q, problem.New(intents.SchemaInvalid, "", "the list has no such parameter, or it comes twice")
		}
		v := values[0]
		member, term := terms[name]
		var ok bool
		switch name {
		case "since":
			at.GTE, ok = v, isTime(v)
		case "until":
			at.LTE, ok = v, isTime(v)
		case "cursor":
			q.After, ok = v, v != "" && len(v) <= maxCursor
		case "limit":
			n, err := strconv.Atoi(v)
			q.Limit, ok = n, err == nil && n >= 1 && n <= maxPage
		default:
			q.Terms[member], ok = []string{v}, term && parameter.MatchString(v)
		}
		if !ok {
			return q, problem.New(intents.SchemaInvalid, "", name+" has no such value")
		}
	}
	if at != (storage.Range{}) {
		q.Ranges = map[string]storage.Range{"at": at}
	}
	return q, nil
}

const (
	defaultPage = 100
	maxPage     = 1000
	maxCursor   = 1024 // bytes
)

func isTime(v string) bool {
	_, err := time.Parse(time.RFC3339, v)
	return err == nil
}
