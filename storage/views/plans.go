package views

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Bounds of a trace.
const (
	maxEvents = 10_000
	eventPage = 1000
	maxBytes  = 4 << 20 // half the limit of a message
)

// Plan reads one plan.
func Plan(ctx context.Context, docs storage.Documents, tenant, id string) (catalog.PlanView, error) {
	doc, err := docs.Get(ctx, tenant, storage.IndexPlans, id)
	if err != nil {
		return catalog.PlanView{}, err
	}
	return planOf(doc)
}

// planOf reads a document of agent_plans; lists are never null.
func planOf(doc storage.Document) (view catalog.PlanView, err error) {
	err = read(doc, &view)
	if view.Steps == nil {
		view.Steps = []catalog.StepView{}
	}
	if view.History == nil {
		view.History = []catalog.Replan{}
	}
	return view, err
}

// Plans lists plans of a user, newest first, without the intents of interrupted steps. The list may
// end before its limit; the cursor continues where it ended.
func Plans(ctx context.Context, docs storage.Documents, tenant, user string, args catalog.PlanList) (catalog.PlanListResult, error) {
	q := query(user, "created_at", catalog.Period{})
	q.After = args.After
	if args.Status != "" {
		q.Terms["status"] = []string{args.Status}
	}
	if args.WorkflowID != "" {
		q.Terms["workflow_id"] = []string{args.WorkflowID}
	}
	if args.Runs {
		q.Ranges = map[string]storage.Range{"workflow_id": {GTE: "-"}} // the first of all names
	}
	out := catalog.PlanListResult{Plans: []catalog.PlanView{}}
	var err error
	out.Cursor, err = walk(ctx, docs, tenant, storage.IndexPlans, q, listed(args.Limit), func(doc storage.Document) error {
		view, err := planOf(doc)
		view.IntentHistory = nil
		out.Plans = append(out.Plans, view)
		return err
	})
	return out, err
}

// Events reads the events of a plan, or of those plans of its session that shown, if it is set,
// reports as shown. They are sorted here: by time, then by their record and their place in it. Lines
// of logs are left out: logs.stream shows them, and needs its own right.
func Events(ctx context.Context, docs storage.Documents, plan catalog.PlanView, shown func(planID string) (bool, error)) ([]json.RawMessage, error) {
	q := storage.Query{Terms: map[string][]string{"plan_id": {plan.PlanID}}, Sort: "ts", Limit: eventPage}
	if shown != nil && plan.SessionID != "" {
		q.Terms = map[string][]string{"session_id": {plan.SessionID}, "user_id": {plan.UserID}}
	}
	if err := fresh(ctx, docs, storage.IndexEvents); err != nil {
		return nil, err
	}
	var found []event
	size := 0
	for {
		page, err := docs.Search(ctx, plan.TenantID, storage.IndexEvents, q)
		if err != nil {
			return nil, err
		}
		for _, doc := range page.Documents {
			e := event{body: doc.Body}
			if err := read(doc, &e); err != nil {
				return nil, err
			}
			if e.Type == catalog.EventLine {
				continue
			}
			if shown != nil {
				if ok, err := shown(e.Plan); err != nil {
					return nil, err
				} else if !ok {
					continue
				}
			}
			found = append(found, e)
			size += len(doc.Body)
		}
		if len(found) > maxEvents || size > maxBytes {
			return nil, tooLarge("there are more events than one answer holds: ask without trace")
		}
		if q.After = page.Cursor; q.After == "" {
			break
		}
	}
	slices.SortStableFunc(found, event.compare)
	out := make([]json.RawMessage, len(found))
	for i, e := range found {
		out[i] = e.body
	}
	return out, nil
}

// event is an event and its sort key.
type event struct {
	Type     string    `json:"event_type"`
	Plan     string    `json:"plan_id"`
	TS       time.Time `json:"ts"`
	Position int64     `json:"position"`
	Seq      int64     `json:"seq"`
	body     json.RawMessage
}

func (e event) compare(f event) int {
	return cmp.Or(e.TS.Compare(f.TS), cmp.Compare(e.Position, f.Position), cmp.Compare(e.Seq, f.Seq))
}
