package catalog

import "aob.dev/writ/intents"

// CapabilityAudit lets its holder read what belongs to other users of the tenant.
const CapabilityAudit = "audit:read"

var auditRows = []Row{
	{Type: TypeAuditRead, Title: "Record that a user reads what belongs to others", Capability: CapabilityAudit, Signers: []intents.Role{intents.RoleGateway}, Executor: ExecutorRouter, Effect: Pure, RandomKey: true},
}

// TypeAuditRead is the intent that must be on record before somebody reads what belongs to another
// user. It is good for an hour.
const TypeAuditRead = "audit.read"

// AuditRead are the arguments of audit.read, and its result.
type AuditRead struct {
	Subject string `json:"subject"` // plan:<plan_id> with all of its intents, intent:<intent_id> of no plan, or one of the Subjects
}

// Subjects of audit.read that are not one thing.
const (
	SubjectPlans  = "plans"  // a list with plans of others
	SubjectBundle = "bundle" // the record of the tenant
)

// SubjectPlan is the subject that a plan is.
func SubjectPlan(id string) string { return "plan:" + id }

// SubjectIntent is the subject that an intent is.
func SubjectIntent(id string) string { return "intent:" + id }
