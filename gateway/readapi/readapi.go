// Package readapi names the interface by which gateways read at routers for people: HTTP, with a
// grant for reading as bearer. It is no part of the public interface.
package readapi

// Path is the prefix of the routes.
const Path = "/reads/"

// Routes, below Path.
const (
	Plans     = Path + "plans"     // ?status, runs, workflow_id, limit, after; /{plan_id}; /{plan_id}/trace?session
	Usage     = Path + "usage"     // ?since, until, by_day, whole_tenant
	Messages  = Path + "messages"  // ?since, until, limit, after
	Agents    = Path + "agents"    // ?name, kind
	Sessions  = Path + "sessions"  // ?limit, after
	Knowledge = Path + "knowledge" // ?limit, after
	Cache     = Path + "cache"
	Schedules = Path + "schedules"
)

// A read of what belongs to another user needs an audit.read of its subject, by the same reader, of
// the last hour. A read without one is refused with AUDIT_REQUIRED, and its answer has the header
// HeaderSubject. The read is repeated with the header HeaderAudit.
const (
	HeaderAudit   = "Writ-Audit-Read"    // intent_id of the audit.read
	HeaderSubject = "Writ-Audit-Subject" // its subject
)

// HeaderAfter has the position of the last intent that the gateway knows of: the read shows what it
// did, whichever router answers.
const HeaderAfter = "Writ-After"
