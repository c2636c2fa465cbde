package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// audited is an audit.read.
type audited struct{ id, user, subject string }

// ServeHTTP answers reads as a router does. Users named over… oversee the tenant.
func (c *core) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, err := c.read(w, r)
	if err != nil {
		problem.FromError(err).Write(w)
		return
	}
	_, _ = w.Write(marshal(c.t, out))
}

func (c *core) read(w http.ResponseWriter, r *http.Request) (any, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	g, err := intents.OpenGrant(token, origin, c.keys(), c.now())
	switch {
	case err != nil:
		return nil, err
	case !g.Reads() || r.Header.Get("X-Api-Key") != "":
		return nil, intents.Refuse(intents.GrantInvalid, "", "no grant for reading")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := r.URL.Path
	c.reads = append(c.reads, r.URL.RequestURI())
	if a, ok := c.refuse[at]; ok {
		return nil, problem.OfAnswer(a)
	}
	switch at {
	case approvalsAt:
		return c.approvals(g, r.URL.Query())
	case readapi.Plans:
		out := catalog.PlanListResult{Plans: []catalog.PlanView{}}
		for _, plan := range c.plans {
			if plan.UserID == g.Subject {
				out.Plans = append(out.Plans, *plan)
			}
		}
		return out, nil
	case readapi.Usage:
		return catalog.PlanUsageResult{Usage: []catalog.UsageRow{{Agent: g.Subject, Model: "m", Turns: 1}}, Plans: []catalog.PlansHealth{}, Skills: []catalog.SkillHealth{}}, nil
	case readapi.Messages:
		return catalog.MessageListResult{Messages: []catalog.Message{}, Cursor: "c"}, nil
	case readapi.Schedules:
		return catalog.ScheduleList{Schedules: append([]catalog.Schedule{}, c.schedules...)}, nil
	case readapi.Agents:
		rows := []catalog.SchemaRow{{Name: "shop", Kind: catalog.KindAgent, Content: "You sell.", Schema: json.RawMessage(`{"type":"object"}`)}}
		if name := r.URL.Query().Get("name"); name != "" && name != "shop" {
			rows = rows[:0]
		}
		return catalog.SchemaListResult{Schemas: rows}, nil
	}
	id, ok := strings.CutPrefix(at, readapi.Plans+"/")
	id, trace := strings.CutSuffix(id, "/trace")
	plan := c.plans[id]
	switch {
	case !ok || plan == nil || plan.TenantID != g.Tenant || plan.UserID != g.Subject && !strings.HasPrefix(g.Subject, "over"):
		return nil, intents.Refuse(intents.NotFound, "", "no such plan")
	case g.Standing() && g.For != "plan:"+id:
		return nil, intents.Refuse(intents.NotFound, "", "not its plan")
	case plan.UserID != g.Subject && !slices.Contains(c.audited, audited{r.Header.Get(readapi.HeaderAudit), g.Subject, catalog.SubjectPlan(id)}):
		w.Header().Set(readapi.HeaderSubject, catalog.SubjectPlan(id))
		return nil, intents.Refuse(intents.AuditRequired, "", "")
	case !trace:
		return *plan, nil
	}
	out := catalog.PlanTrace{PlanID: id, Events: []json.RawMessage{json.RawMessage(`{"type":"plan_opened"}`)}}
	if r.URL.Query().Get("session") == "true" {
		out.Events = append(out.Events, json.RawMessage(`{"type":"of_another_plan"}`))
	}
	return out, nil
}

// asked returns the reads of a path, in order.
func (c *core) asked(path string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.reads), func(r string) bool { at, _, _ := strings.Cut(r, "?"); return at != path })
}
