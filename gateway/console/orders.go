package console

import (
	"encoding/json"
	"net/http"
	"net/url"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/office"
	"aob.dev/writ/internal/problem"
)

// entry is an order in a list of the API.
type entry struct {
	IntentID string `json:"intent_id"`
	Position int64  `json:"position"`
	UserID   string `json:"user_id"`
	Type     string `json:"type"`
	Code     string `json:"code"`
	Verdict  string `json:"verdict"`
	KID      string `json:"kid"`
	Role     string `json:"role"`
	PlanID   string `json:"plan_id"`
	At       string `json:"at"`

	Decision *intents.Decision `json:"-"`
	Outcome  *intents.Outcome  `json:"-"`
	Receipt  string            `json:"-"`
}

// orderList is a page of a list of orders.
type orderList struct {
	Orders []entry `json:"orders"`
	Cursor string  `json:"cursor"`
	Filter filter  `json:"-"`
	Next   string  `json:"-"` // address of the next page
}

// filter of a list, as the API takes it.
type filter struct{ Type, Code, Verdict, User, Plan, Since, Until string }

// pageSize of a list: each order is asked for what became of it.
const pageSize = 25

// orders lists orders that the person may see, with what became of each.
func (q *request) orders(f filter) (l orderList, err error) {
	v := url.Values{"limit": {"25"}}
	back := url.Values{}
	for name, value := range map[string]string{"type": f.Type, "code": f.Code, "verdict": f.Verdict, "user": f.User, "plan_id": f.Plan, "since": f.Since, "until": f.Until} {
		if value != "" {
			v.Set(name, value)
			back.Set(name, value)
		}
	}
	if cursor := q.FormValue("cursor"); cursor != "" {
		v.Set("cursor", cursor)
	}
	if err := q.get("/v1/intents?"+v.Encode(), &l); err != nil {
		return l, err
	}
	l.Filter = f
	for i := range l.Orders {
		o := &l.Orders[i]
		a, err := q.answer(o.IntentID)
		if err != nil {
			return l, err
		}
		o.Decision, o.Outcome, o.Receipt = a.Decision, a.Outcome, a.Receipt
	}
	if len(l.Orders) == pageSize && l.Cursor != "" {
		back.Set("cursor", l.Cursor)
		l.Next = q.URL.Path + "?" + back.Encode()
	}
	return l, nil
}

// answer is what became of an order. Refusals of recorded orders are answers as well.
func (q *request) answer(id string) (a intents.Answer, err error) {
	err = q.get("/v1/intents/"+url.PathEscape(id), &a)
	return a, err
}

func (q *request) filter() filter {
	return filter{q.FormValue("type"), q.FormValue("code"), q.FormValue("verdict"), q.FormValue("user"), q.FormValue("plan_id"), q.FormValue("since"), q.FormValue("until")}
}

// now is the page of orders as they are decided.
func (c *Console) now(q *request) (any, error) { return q.orders(q.filter()) }

// orderPage is one order.
type orderPage struct {
	intents.Answer
	Sealed *office.Sealed // nil: a policy masks parts of it
}

func (c *Console) order(q *request) (any, error) {
	a, err := q.answer(q.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := orderPage{Answer: a}
	if a.Position != nil {
		out.Sealed, err = q.sealed(a.IntentID)
	}
	return out, err
}

// sealed is an order as it was signed; nil: a policy masks parts of it.
func (q *request) sealed(id string) (s *office.Sealed, err error) {
	err = q.get(office.Path+"orders/"+url.PathEscape(id), &s)
	return s, err
}

// proof is what the browser verifies: receipt, inclusion and keys, as the API has them.
func (c *Console) proof(q *request) (any, error) {
	a, err := c.fetch(q.Context(), q.s.credentials, http.MethodGet, "/v1/intents/"+url.PathEscape(q.PathValue("id"))+"/proof", nil)
	if err != nil {
		problem.Of(err).Write(q.w)
		return nil, errDone
	}
	q.w.Header().Set("Content-Type", "application/json")
	_, _ = a.body.WriteTo(q.w) // fails only with the connection
	return nil, errDone
}

// argsOf decodes arguments to look at members; what is none has none.
func argsOf(raw json.RawMessage) (m map[string]any) {
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}
