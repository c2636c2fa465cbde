package router

import (
	"context"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// schema is stage 3: the type is in the catalog, the key's role may sign it, a
// task stays within its own step and skills, and the arguments match their
// schema. In Go, not in Rego: no policy can widen it.
func (r *Router) schema(_ context.Context, o *order) error {
	row, ok := r.cfg.Catalog.Lookup(o.env.Type())
	if !ok {
		return intents.Refuse(intents.UnknownIntent, "/intent/type", "no such type in the catalog")
	}
	o.row = row
	o.decision.Executor, o.decision.Effect = row.Executor, string(row.Effect)
	if !row.MaySign(o.env.Signer().Role) {
		return intents.Refuse(intents.KeyRole, "/sig", fmt.Sprintf("a %s key may not sign this type", o.env.Signer().Role))
	}
	if err := r.scope(o); err != nil {
		return err
	}
	s, err := row.ArgsSchema()
	if err != nil {
		return err
	}
	if v := s.Validate(o.env.Decoded()); len(v) > 0 {
		return intents.Invalid("/intent/args", v)
	}
	if o.env.TTL() > row.TTL() {
		return intents.Refuse(intents.SchemaInvalid, "/constraints/ttl_sec", fmt.Sprintf("at most %d for this type", int(row.TTL().Seconds())))
	}
	return nil
}

// scope holds a task to what its step order opened it for, and every other
// signer to plans of its own user.
func (r *Router) scope(o *order) error {
	c, pr := o.env.Context(), o.env.Principal()
	if o.env.Signer().Role == intents.RoleTask {
		return r.taskScope(o, c)
	}
	if o.env.Type() == "read_memory" && o.env.Signer().Role == intents.RoleManager && !slices.Contains(o.view.KeysOfPlan(pr.Tenant, c.PlanID), o.env.StringArg("key")) {
		return intents.Refuse(intents.TaskScope, "/intent/args/key", "a manager may read the results of its plan")
	}
	if o.view.Rules() >= intents.RulesStrict && catalog.BeyondGrant(o.env) {
		return intents.Refuse(intents.TaskScope, "/actor/grant", "a standing grant reads the plan that it is for and no other")
	}
	if c.PlanID == "" || state.Opens(o.env.Type()) {
		return nil
	}
	if o.env.Signer().Role == intents.RoleOperator && o.env.Type() == "cancel" {
		return nil // any plan of the tenant; stage 5 holds the context to the arguments
	}
	p, user, ok := o.view.PlanFacts(pr.Tenant, c.PlanID)
	if !ok {
		return intents.Refuse(intents.TaskScope, "/context/plan_id", "no such plan of this user")
	}
	if user != pr.UserID {
		return intents.Refuse(intents.TaskScope, "/context/plan_id", "the plan belongs to another user")
	}
	o.facts.Plan = p
	return nil
}

func (r *Router) taskScope(o *order, c intents.Context) error {
	t, ok := o.view.Task(o.env.Signer().Task)
	if !ok {
		return intents.Refuse(intents.TaskScope, "/sig", "the key belongs to no task")
	}
	o.task = &t
	refuse := func(pointer, reason string) error { return intents.Refuse(intents.TaskScope, pointer, reason) }
	pr := o.env.Principal()
	switch {
	case pr.Tenant != t.Tenant || pr.UserID != t.User:
		return refuse("/actor", "the task belongs to another user")
	case c.TaskID != t.ID:
		return refuse("/context/task_id", "not the key's own task")
	case c.Ask != t.Ask:
		return refuse("/context/ask", "not the call that the task was opened for")
	case c.PlanID != t.Plan || c.Revision != t.Revision || c.Step != t.Step:
		return refuse("/context/step", "not the step that the task was opened for")
	case c.SessionID != t.Session || c.TurnID != t.Turn:
		return refuse("/context/session_id", "not the session and turn of the plan")
	}
	if err := t.Takes(o.env.Grant()); err != nil {
		return err
	}
	if !t.MayOrder(o.env.Type()) {
		return refuse("/intent/type", "the agent "+t.Agent+" has no tool that orders this")
	}
	if err := o.view.CheckNodeOrder(t, o.env.Type(), o.env.Args()); err != nil {
		return err
	}
	switch o.env.Type() {
	case "skill.call", "skill.load":
		if a, err := argsOf[catalog.SkillLoad](o.env); err == nil && len(a.Skills) > 0 {
			if !t.MayLoad(a.Skills) {
				return refuse("/intent/args/skills", "one of the skills is not among those of the task's step")
			}
		} else if !slices.Contains(t.Spec.Skills, o.env.StringArg("skill")) {
			return refuse("/intent/args/skill", "the skill is not among those of the task's step")
		}
	case "read_memory":
		key := o.env.StringArg("key")
		if !slices.Contains(t.Inputs, key) && !(ownKey(key, t) && slices.Contains(o.view.KeysOfPlan(t.Tenant, t.Plan), key)) {
			return refuse("/intent/args/key", "a task may read the results of its step's inputs, and its own")
		}
	case "memory.query":
		if t.Agent == "" && o.env.StringArg("mode") != "" {
			return refuse("/intent/args/mode", "the task of a step searches what belongs to the step")
		}
	case intents.TypeAgentAsk:
		if agent := o.env.StringArg("agent"); !slices.Contains(t.Asks, agent) {
			return state.ErrMayNotAsk(t, agent)
		}
	}
	o.facts.Task = taskFacts(t)
	o.facts.Plan, _, _ = o.view.PlanFacts(t.Tenant, t.Plan)
	return nil
}

// ownKey: memory keys are {tenant}:{session}:{task}:{label}.
func ownKey(key string, t state.Task) bool {
	prefix := t.Tenant + ":" + t.Session + ":" + t.ID + ":"
	return len(key) > len(prefix) && key[:len(prefix)] == prefix
}
