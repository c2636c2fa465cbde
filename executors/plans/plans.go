// Package plans reads plans: the documents of agent_plans and agent_events, which the recorder
// alone writes. Users see their own plans; users whose ticket lets them oversee see all plans of
// their tenant. Any other plan is reported as missing. The package also sums up plans, and adds to
// messages the usage of their turns.
package plans

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "plans"

// Bounds of one answer.
const (
	defaultList = 20
	maxList     = 100
	maxEvents   = 10_000
	eventPage   = 1000
	maxBytes    = 4 << 20 // of a trace; half the limit of a message
	listBytes   = 1 << 20 // a list ends after the page that reaches it
	listPage    = 5
)

// Handlers of the executor. They have no state.
func Handlers(docs storage.Documents, prices map[string]catalog.Price) map[string]executors.Handler {
	p := plans{docs, prices}
	return executors.Fresh(docs, map[string]executors.Handler{
		"plan.get": executors.WithArgs(p.get), "plan.list": executors.WithArgs(p.list),
		"plan.usage": executors.WithArgs(p.usage), "message.list": executors.WithArgs(p.messages),
		"schema.list": executors.WithArgs(p.schemas), "transcript.get": transcript,
	}, searched)
}

// searched are the indices that intents search.
var searched = map[string][]string{
	"plan.get": {storage.IndexEvents}, "plan.list": {storage.IndexPlans}, "plan.usage": {storage.IndexPlans, storage.IndexSkillCalls},
	"message.list": {storage.IndexMessages}, "schema.list": {storage.IndexSchemas},
}

// transcript gives the calls that the router put into the ticket.
func transcript(_ context.Context, o *executors.Intent) (*executors.Result, error) {
	in, ok := o.Input("/calls")
	if !ok {
		return nil, executors.Fail(intents.MalformedArgs, "the ticket has no calls")
	}
	var out catalog.TranscriptGetResult
	if err := json.Unmarshal(in.Value, &out.Calls); err != nil {
		return nil, executors.Fail(intents.ExecutorFailed, "the ticket's calls cannot be read")
	}
	return &executors.Result{Value: out}, nil
}

type plans struct {
	docs   storage.Documents
	prices map[string]catalog.Price // by driver:model
}

// get reads one plan, and with Trace its events in the order in which they
// happened.
func (p plans) get(ctx context.Context, o *executors.Intent, args catalog.PlanGet) (*executors.Result, error) {
	doc, err := p.docs.Get(ctx, o.Ticket.Actor.Tenant, storage.IndexPlans, args.PlanID)
	if err != nil {
		return nil, executors.Store(err)
	}
	view, err := viewOf(doc)
	if err != nil {
		return nil, err
	}
	if view.UserID != o.Ticket.Actor.UserID && !o.Ticket.Oversees {
		return nil, executors.Store(storage.ErrNotFound)
	}
	out := catalog.PlanGetResult{Plan: view}
	if args.Trace {
		of := map[string][]string{"plan_id": {args.PlanID}}
		if args.Session && view.SessionID != "" {
			of = map[string][]string{"session_id": {view.SessionID}, "user_id": {view.UserID}}
		}
		if out.Events, err = p.events(ctx, o.Ticket.Actor.Tenant, of); err != nil {
			return nil, err
		}
	}
	return &executors.Result{Value: out}, nil
}

// viewOf reads a document of agent_plans; lists are never null.
func viewOf(doc storage.Document) (catalog.PlanView, error) {
	var view catalog.PlanView
	if err := json.Unmarshal(doc.Body, &view); err != nil {
		return view, executors.Fail(intents.ExecutorFailed, "a stored plan cannot be read")
	}
	if view.Steps == nil {
		view.Steps = []catalog.StepView{}
	}
	if view.History == nil {
		view.History = []catalog.Replan{}
	}
	return view, nil
}

// events reads all events of a plan, or of a session. They are sorted here: by time, then by their
// record and their place in it.
func (p plans) events(ctx context.Context, tenant string, of map[string][]string) ([]json.RawMessage, error) {
	q := storage.Query{Terms: of, Sort: "ts", Limit: eventPage}
	var found []event
	size := 0
	for {
		page, err := p.docs.Search(ctx, tenant, storage.IndexEvents, q)
		if err != nil {
			return nil, executors.Store(err)
		}
		for _, doc := range page.Documents {
			e := event{body: doc.Body}
			if err := json.Unmarshal(doc.Body, &e); err != nil {
				return nil, executors.Fail(intents.ExecutorFailed, "a stored event cannot be read")
			}
			if e.Type == catalog.EventLine {
				continue // logs.stream shows them and needs its own right
			}
			found = append(found, e)
			size += len(doc.Body)
		}
		if len(found) > maxEvents || size > maxBytes {
			return nil, executors.Fail(intents.OversizedOutput, "there are more events than one answer holds: ask without trace")
		}
		if page.Cursor == "" {
			break
		}
		q.After = page.Cursor
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
	TS       time.Time `json:"ts"`
	Position int64     `json:"position"`
	Seq      int64     `json:"seq"`
	body     json.RawMessage
}

func (e event) compare(f event) int {
	return cmp.Or(e.TS.Compare(f.TS), cmp.Compare(e.Position, f.Position), cmp.Compare(e.Seq, f.Seq))
}

// list returns plans, newest first, without the intents of interrupted steps. It may end
// before Limit; the cursor continues where it ended.
func (p plans) list(ctx context.Context, o *executors.Intent, args catalog.PlanList) (*executors.Result, error) {
	args.Limit = cmp.Or(args.Limit, defaultList)
	if args.Limit < 0 || args.Limit > maxList {
		return nil, executors.Fail(intents.MalformedArgs, "limit is 1 to 100")
	}
	q := storage.Query{Terms: map[string][]string{}, Sort: "-created_at", After: args.After}
	if !o.Ticket.Oversees {
		q.Terms["user_id"] = []string{o.Ticket.Actor.UserID}
	}
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
	out.Cursor, err = p.walk(ctx, o, storage.IndexPlans, q, listed(args.Limit), func(doc storage.Document) error {
		view, err := viewOf(doc)
		view.IntentHistory = nil
		out.Plans = append(out.Plans, view)
		return err
	})
	return &executors.Result{Value: out}, err
}

// bounds of a walk: at most so many documents, by pages, until they have so many bytes.
type bounds struct{ documents, page, bytes int }

// listed are the bounds of a list.
func listed(limit int) bounds { return bounds{limit, listPage, listBytes} }

// walk reads documents within bounds; the cursor continues where it ended.
func (p plans) walk(ctx context.Context, o *executors.Intent, index string, q storage.Query, b bounds, add func(storage.Document) error) (cursor string, err error) {
	for n, size := 0, 0; n < b.documents && size < b.bytes; {
		q.Limit = min(b.page, b.documents-n)
		found, err := p.docs.Search(ctx, o.Ticket.Actor.Tenant, index, q)
		if err != nil {
			return "", executors.Store(err)
		}
		for _, doc := range found.Documents {
			if err := add(doc); err != nil {
				return "", err
			}
			n, size = n+1, size+len(doc.Body)
		}
		if q.After = found.Cursor; q.After == "" {
			break
		}
	}
	return q.After, nil
}
