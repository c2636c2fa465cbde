package router

import (
	"context"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// schema is stage 3: the type is in the catalog, the key's role may sign it, a task stays within
// its own step and skills, and the arguments match their schema. It is Go, not Rego, so that no
// policy can widen it.
func (r *Router) schema(_ context.Context, d *decision) error {
	row, ok := r.cfg.Catalog.Lookup(d.env.Type())
	if !ok {
		return intents.Refuse(intents.UnknownIntent, "/intent/type", "no such type in the catalog")
	}
	d.row = row
	d.Executor, d.Effect = row.Executor, string(row.Effect)
	if !row.MaySign(d.env.Signer().Role) {
		return intents.Refuse(intents.KeyRole, "/sig", fmt.Sprintf("a %s key may not sign this type", d.env.Signer().Role))
	}
	if err := r.scope(d); err != nil {
		return err
	}
	s, err := row.ArgsSchema()
	if err != nil {
		return err
	}
	if v := s.Validate(d.env.DecodedArgs()); len(v) > 0 {
		return intents.Invalid("/intent/args", v)
	}
	if d.env.TTL() > row.TTL() {
		return intents.Refuse(intents.SchemaInvalid, "/constraints/ttl_sec", fmt.Sprintf("at most %d for this type", int(row.TTL().Seconds())))
	}
	return nil
}

// scope restricts a task to what its step intent opened it for, and every other signer to plans of
// its own user.
func (r *Router) scope(d *decision) error {
	c, pr := d.env.Context(), d.env.Principal()
	if d.env.Signer().Role == intents.RoleTask {
		return r.taskScope(d, c)
	}
	if d.env.Type() == "read_memory" && d.env.Signer().Role == intents.RoleManager && !slices.Contains(d.view.KeysOfPlan(pr.Tenant, c.PlanID), d.env.StringArg("key")) {
		return intents.Refuse(intents.TaskScope, "/intent/args/key", "a manager may read the results of its plan")
	}
	if catalog.BeyondGrant(d.env) {
		return intents.Refuse(intents.TaskScope, "/actor/grant", "a standing grant reads the plan that it is for and no other")
	}
	if c.PlanID == "" || state.Opens(d.env.Type()) {
		return nil
	}
	if d.env.Signer().Role == intents.RoleOperator && d.env.Type() == "cancel" {
		return nil // any plan of the tenant; stage 5 checks the context against the arguments
	}
	p, user, ok := d.view.PlanInput(pr.Tenant, c.PlanID)
	if !ok || user != pr.UserID {
		return intents.Refuse(intents.TaskScope, "/context/plan_id", "no such plan of this user")
	}
	d.inputs.Plan = p
	return nil
}

func (r *Router) taskScope(d *decision, c intents.Context) error {
	t, ok := d.view.Task(d.env.Signer().Task)
	if !ok {
		return intents.Refuse(intents.TaskScope, "/sig", "the key belongs to no task")
	}
	d.task = &t
	refuse := func(pointer, reason string) error { return intents.Refuse(intents.TaskScope, pointer, reason) }
	pr := d.env.Principal()
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
	if err := t.Takes(d.env.Grant()); err != nil {
		return err
	}
	if !t.MayIntent(d.env.Type()) {
		return refuse("/intent/type", "the agent "+t.Agent+" has no tool for this")
	}
	if err := d.view.CheckNodeIntent(t, d.env.Type(), d.env.Args()); err != nil {
		return err
	}
	switch d.env.Type() {
	case "resource.read", "skill.call", "skill.load":
		if several := d.env.StringsArg("skills"); len(several) > 0 {
			if !t.MayLoad(several) {
				return refuse("/intent/args/skills", "one of the skills is not among those of the task's step")
			}
		} else if !slices.Contains(t.Spec.Skills, d.env.StringArg("skill")) {
			return refuse("/intent/args/skill", "the skill is not among those of the task's step")
		}
	case "read_memory":
		key := d.env.StringArg("key")
		if !slices.Contains(t.Inputs, key) && !(ownKey(key, t) && slices.Contains(d.view.KeysOfPlan(t.Tenant, t.Plan), key)) {
			return refuse("/intent/args/key", "a task may read the results of its step's inputs, and its own")
		}
	case "memory.query":
		if t.Agent == "" && d.env.StringArg("mode") != "" {
			return refuse("/intent/args/mode", "the task of a step searches what belongs to the step")
		}
	case intents.TypeAgentAsk:
		if agent := d.env.StringArg("agent"); !slices.Contains(t.Asks, agent) {
			return state.ErrMayNotAsk(t, agent)
		}
	}
	d.inputs.Task = taskInput(t)
	d.inputs.Plan, _, _ = d.view.PlanInput(t.Tenant, t.Plan)
	return nil
}

// ownKey: memory keys are {tenant}:{session}:{task}:{label}.
func ownKey(key string, t state.Task) bool {
	prefix := t.Tenant + ":" + t.Session + ":" + t.ID + ":"
	return len(key) > len(prefix) && key[:len(prefix)] == prefix
}
