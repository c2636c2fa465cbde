package state

import "aob.dev/writ/intents"

// Question is the input of stage 7 about an intent on the directory that its decision reads: for
// the router, a dry run, the release of a held intent, a replay and the trial of another policy.
// t is the task whose key signed it; nil if none.
func (d *Directory) Question(e *intents.Envelope, f intents.DecisionInputs, t *Task, w intents.Waiting) intents.Question {
	tenant := e.Principal().Tenant
	return intents.Question{
		Envelope: e, Inputs: f, Rules: d.ownRules(t, tenant, e.Type(), e.Args(), f.Scopes), Approval: e.Type() == TypeApprove,
		CanMeet: func(rule intents.HoldRule) bool { return d.CanMeet(tenant, rule, w.Requesters()) }, Waiting: w,
	}
}
