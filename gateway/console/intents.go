package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// entry is an intent in a list of the API.
type entry struct {
	catalog.IntentEntry
	Decision *intents.Decision `json:"-"`
	Outcome  *intents.Outcome  `json:"-"`
	Receipt  string            `json:"-"`
	Waits    bool              `json:"-"` // for people
}

// What an intent is for, in words.
func (e entry) What() string {
	row, _ := catalog.Builtin().Lookup(e.Type)
	return cmp.Or(row.Title, e.Type)
}

// Became says what became of it.
func (e entry) Became() string {
	switch o := e.Outcome; {
	case o == nil && e.Verdict == string(intents.Deny):
		return "refused"
	case e.Waits:
		return "waits for people"
	case o == nil:
		return "is being carried out"
	case o.Status == intents.StatusIndetermined:
		return "may have happened"
	case o.Status == intents.Failed:
		return "failed"
	default:
		return "carried out"
	}
}

// intentList is a page of a list of intents.
type intentList struct {
	Intents []entry `json:"intents"`
	Cursor  string  `json:"cursor"`
	Filter  filter  `json:"-"`
	Next    string  `json:"-"` // address of the next page
}

// filter of a list: the parameters of the API that are set.
type filter map[string]string

var filters = []string{"type", "code", "verdict", "user", "skill", "plan_id", "since", "until"}

// with is the filter's query with others, in pairs of name and value; an empty value removes its
// parameter.
func (f filter) with(others ...string) url.Values {
	v := url.Values{}
	for name, value := range f {
		v.Set(name, value)
	}
	for pair := range slices.Chunk(others, 2) {
		if v.Set(pair[0], pair[1]); pair[1] == "" {
			v.Del(pair[0])
		}
	}
	return v
}

// pageSize is the length of a list: the outcome of each intent is requested.
const pageSize = 25

// intents lists intents that the person may see, with their outcomes.
func (q *request) intents(f filter) (l intentList, err error) {
	if err := q.get("/v1/intents?"+f.with("limit", strconv.Itoa(pageSize), "cursor", q.FormValue("cursor")).Encode(), &l); err != nil {
		return l, err
	}
	l.Filter = q.filter()
	for i := range l.Intents {
		o := &l.Intents[i]
		a, err := q.answer(o.IntentID)
		if err != nil {
			return l, err
		}
		o.Decision, o.Outcome, o.Receipt, o.Waits = a.Decision, a.Outcome, a.Receipt, a.Code == intents.ApprovalRequired
	}
	if len(l.Intents) == pageSize && l.Cursor != "" {
		l.Next = q.URL.Path + "?" + f.with("cursor", l.Cursor).Encode()
	}
	return l, nil
}

// answer returns the outcome of an intent. Refusals of recorded intents are answers as well.
func (q *request) answer(id string) (a intents.Answer, err error) {
	err = q.get("/v1/intents/"+url.PathEscape(id), &a)
	return a, err
}

func (q *request) filter() filter {
	f := filter{}
	for _, name := range filters {
		if v := strings.TrimSpace(q.FormValue(name)); v != "" {
			f[name] = v
		}
	}
	return f
}

// now is the page with the newest decisions.
func (c *Console) now(q *request) (any, error) { return q.intents(q.filter()) }

// intentPage is one intent, from who asked for it to its proof.
type intentPage struct {
	intents.Answer
	consoleapi.Signed
	Sentence string
	Waits    bool              // for people
	Problem  *problem.Problem  // nil: it was carried out, or is not over
	Plan     *catalog.PlanView // nil: it is of none that the person may see
	Step     *catalog.StepView // nil: of none
	Explains bool              // the person may see which rules were met
}

func (c *Console) intent(q *request) (any, error) {
	a, err := q.answer(q.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := intentPage{Answer: a, Explains: q.may(explains) == nil}
	if out.Signed, err = q.signed(a.IntentID); err != nil {
		return nil, err
	}
	row, _ := catalog.Builtin().Lookup(out.Type)
	out.Sentence = cmp.Or(catalog.Sentence(row, out.Args, ""), out.Type)
	if out.Waits = a.Code == intents.ApprovalRequired; !out.Waits && a.Code != intents.InFlight {
		out.Problem = problem.OfAnswer(&a)
	}
	var p catalog.PlanView
	if id := out.Context.PlanID; id != "" && q.get("/agent/plans/"+url.PathEscape(id), &p) == nil {
		out.Plan = &p
		if i := slices.IndexFunc(p.Steps, func(s catalog.StepView) bool { return s.Step == out.Context.Step }); i >= 0 {
			out.Step = &p.Steps[i]
		}
	}
	return out, nil
}

// signed returns an intent as it was signed.
func (q *request) signed(id string) (s consoleapi.Signed, err error) {
	err = q.get(consoleapi.Path+"intents/"+url.PathEscape(id), &s)
	return s, err
}

// proof returns the data that the browser verifies: receipt, inclusion and keys, as the API has
// them.
func (c *Console) proof(q *request) (any, error) {
	a, err := c.fetch(q.Context(), q.s.credentials, http.MethodGet, "/v1/intents/"+url.PathEscape(q.PathValue("id"))+"/proof", nil)
	if err != nil {
		problem.FromError(err).Write(q.w)
		return nil, errDone
	}
	q.w.Header().Set("Content-Type", "application/json")
	_, _ = a.Body.WriteTo(q.w) // fails only with the connection
	return nil, errDone
}

// argsOf decodes arguments for access to members; other values have none.
func argsOf(raw json.RawMessage) (m map[string]any) {
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}
