package httpapi

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/views"
)

// openDocuments adds the reads of documents, which gateways forward (package readapi).
func (s *server) openDocuments(r *edge.Routes) {
	s.read(r, readapi.Plans, catalog.CapabilityPlans, (*visitor).plans)
	s.read(r, readapi.Plans+"/:id", catalog.CapabilityPlans, func(v *visitor) (any, error) { return v.plan() })
	s.read(r, readapi.Plans+"/:id/trace", catalog.CapabilityPlans, (*visitor).trace)
	s.read(r, readapi.Usage, catalog.CapabilityPlans, (*visitor).usage)
	s.read(r, readapi.Agents, catalog.CapabilityPlans, (*visitor).agents)
	s.read(r, readapi.Messages, catalog.CapabilitySessions, (*visitor).messages)
	s.read(r, readapi.Sessions, catalog.CapabilitySessions, (*visitor).sessions)
	s.read(r, readapi.Knowledge, catalog.CapabilityKnowledge, (*visitor).knowledge)
	s.read(r, readapi.Cache, catalog.CapabilityCache, (*visitor).cache)
	s.read(r, readapi.Schedules, catalog.CapabilitySchedules, (*visitor).schedules)
}

// thing is a plan as the read function decides about it.
func thing(p catalog.PlanView) router.Thing {
	t := router.Thing{Owner: p.UserID, Plan: p.PlanID}
	for _, s := range p.Steps {
		t.Skills = append(t.Skills, s.Skills...)
	}
	return t
}

// plan reads the plan of the path.
func (v *visitor) plan() (catalog.PlanView, error) {
	return v.planAs(catalog.SubjectPlan(v.Param("id")))
}

// planAs reads the plan of the path as a part of a subject.
func (v *visitor) planAs(subject string) (catalog.PlanView, error) {
	if err := v.current(); err != nil {
		return catalog.PlanView{}, err
	}
	v.line.Subject, v.line.Own = subject, false
	p, err := views.Plan(v.Request.Context(), v.s.cfg.Documents, v.Grant.Tenant, v.Param("id"))
	if err == nil {
		err = v.sees(thing(p), subject)
	}
	if errors.Is(err, storage.ErrNotFound) {
		err = problem.New(intents.NotFound, "", "no such plan or run of this user")
	}
	return p, err
}

// trace reads the events of a plan, or with ?session=true of all plans of its session that the person
// may see. Those of somebody else are a list with plans of others.
func (v *visitor) trace() (any, error) {
	if err := v.accepts("session"); err != nil {
		return nil, err
	}
	subject, shown := catalog.SubjectPlan(v.Param("id")), (func(string) (bool, error))(nil)
	if v.Query("session") == "true" {
		subject, shown = catalog.SubjectPlans, v.plansShown(router.Thing{})
	}
	p, err := v.planAs(subject)
	if err != nil {
		return nil, err
	}
	events, err := views.Events(v.Request.Context(), v.s.cfg.Documents, p, shown)
	return catalog.PlanTrace{PlanID: p.PlanID, Events: append([]json.RawMessage{}, events...)}, err
}

// plansShown returns whether the person may see a plan. gone is what one is that is not kept any more.
func (v *visitor) plansShown(gone router.Thing) func(id string) (bool, error) {
	known := map[string]bool{}
	return func(id string) (bool, error) {
		if ok, again := known[id]; again {
			return ok, nil
		}
		p, err := views.Plan(v.Request.Context(), v.s.cfg.Documents, v.Grant.Tenant, id)
		it := thing(p)
		if errors.Is(err, storage.ErrNotFound) {
			it, err = gone, nil
		}
		known[id] = err == nil && v.Sees(it)
		return known[id], err
	}
}

// plans lists the person's plans, or those of all users for somebody who oversees them.
func (v *visitor) plans() (any, error) {
	if err := v.accepts("status", "after", "workflow_id", "runs", "limit"); err != nil {
		return nil, err
	}
	q := catalog.PlanList{Status: v.Query("status"), After: v.Query("after"), WorkflowID: v.Query("workflow_id"), Runs: v.Query("runs") == "true"}
	var err error
	if q.Limit, err = v.limit(); err != nil {
		return nil, err
	}
	user, err := v.whose(v.Oversees())
	if err != nil {
		return nil, err
	}
	v.line.Own = true // unless there are some of others
	if err := v.current(); err != nil {
		return nil, err
	}
	page, err := views.Plans(v.Request.Context(), v.s.cfg.Documents, v.Grant.Tenant, user, q)
	if err != nil {
		return nil, v.unlisted(q.After, err)
	}
	page.Plans = slices.DeleteFunc(page.Plans, func(p catalog.PlanView) bool { return !v.Sees(thing(p)) })
	if slices.ContainsFunc(page.Plans, func(p catalog.PlanView) bool { return p.UserID != v.Grant.Subject }) {
		err = v.audited(catalog.SubjectPlans)
	}
	return page, err
}

// usage sums up what plans used. A report of the whole tenant shows no plan of anybody.
func (v *visitor) usage() (any, error) {
	if err := v.accepts("since", "until", "by_day", "whole_tenant"); err != nil {
		return nil, err
	}
	q := catalog.PlanUsage{Period: v.period(), ByDay: v.Query("by_day") == "true", WholeTenant: v.Query("whole_tenant") == "true"}
	user, err := v.whose(q.WholeTenant)
	if err == nil {
		err = v.current()
	}
	if err != nil {
		return nil, err
	}
	return views.Usage(v.Request.Context(), v.s.cfg.Documents, v.s.cfg.Prices, v.Grant.Tenant, user, q)
}

// own begins a list of the person's own documents, with these parameters.
func (v *visitor) own(parameters ...string) (user string, limit int, err error) {
	if err = v.accepts(parameters...); err != nil {
		return "", 0, err
	}
	if limit, err = v.limit(); err != nil {
		return "", 0, err
	}
	return v.Grant.Subject, limit, v.current()
}

func (v *visitor) messages() (any, error) {
	user, limit, err := v.own("since", "until", "limit", "after")
	if err != nil {
		return nil, err
	}
	q := catalog.MessageList{Period: v.period(), Limit: limit, After: v.Query("after")}
	page, err := views.Messages(v.Request.Context(), v.s.cfg.Documents, v.Grant.Tenant, user, q)
	if err != nil {
		return nil, v.unlisted(q.After, err)
	}
	shown := v.plansShown(router.Thing{Owner: user, Skills: []string{anySkill}})
	page.Messages = slices.DeleteFunc(page.Messages, func(m catalog.Message) bool {
		ok, failed := m.PlanID == "", error(nil)
		if !ok {
			ok, failed = shown(m.PlanID)
		}
		err = errors.Join(err, failed)
		return !ok
	})
	return page, err
}

// anySkill is one of a plan that is not kept any more, which may have used any.
const anySkill = "?"

func (v *visitor) sessions() (any, error) {
	user, limit, err := v.own("limit", "after")
	if err != nil {
		return nil, err
	}
	q := catalog.SessionList{Limit: limit, After: v.Query("after")}
	page, err := views.Sessions(v.Request.Context(), v.s.cfg.Documents, v.Grant.Tenant, user, q, v.s.now())
	return page, v.unlisted(q.After, err)
}

func (v *visitor) knowledge() (any, error) {
	user, limit, err := v.own("limit", "after")
	if err != nil {
		return nil, err
	}
	q := catalog.KBList{Limit: limit, After: v.Query("after")}
	page, err := views.Knowledge(v.Request.Context(), v.s.cfg.Documents, v.Grant.Tenant, user, q)
	return page, v.unlisted(q.After, err)
}

func (v *visitor) agents() (any, error) {
	if _, _, err := v.own("name", "kind"); err != nil {
		return nil, err
	}
	q := catalog.SchemaList{Name: v.Query("name"), Kind: v.Query("kind")}
	return views.Agents(v.Request.Context(), v.s.cfg.Documents, v.Grant.Tenant, q)
}

func (v *visitor) cache() (any, error) {
	return v.s.cfg.Cached(v.Request.Context(), intents.Principal{Tenant: v.Grant.Tenant, UserID: v.Grant.Subject})
}

func (v *visitor) schedules() (any, error) {
	return catalog.ScheduleList{Schedules: append([]catalog.Schedule{}, v.s.cfg.State.Schedules(v.Grant.Tenant, v.Grant.Subject)...)}, nil
}

func (v *visitor) period() catalog.Period {
	return catalog.Period{Since: v.Query("since"), Until: v.Query("until")}
}

// limit returns ?limit=; 0: absent.
func (v *visitor) limit() (int, error) {
	raw, given := v.GetQuery("limit")
	if !given {
		return 0, nil
	}
	return strconv.Atoi(raw)
}

// unlisted is the error of a list that cannot be read from a cursor on.
func (v *visitor) unlisted(after string, err error) error {
	if err != nil && after != "" && v.Request.Context().Err() == nil && !errors.Is(err, storage.ErrUnavailable) {
		return problem.New(intents.SchemaInvalid, "/after", "cursor is of no such list")
	}
	return err
}
