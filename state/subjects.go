package state

import "aob.dev/writ/storage"

// Subjects are the pieces of state that decisions rely on. A commit asserts for each
// that it was touched last where the decision saw it.
const (
	SubjectKeys   storage.Subject = "keys"
	SubjectPolicy storage.Subject = "policy"
)

const tenantPrefix = "dir/"

// SubjectTenant is the directory data of a tenant.
func SubjectTenant(tenant string) storage.Subject { return storage.Subject(tenantPrefix + tenant) }

// SubjectPlan is a plan: its steps, holds and what its once orders came to.
func SubjectPlan(tenant, plan string) storage.Subject {
	return storage.Subject("plan/" + tenant + "/" + plan)
}

// SubjectTask is a task.
func SubjectTask(tenant, task string) storage.Subject {
	return storage.Subject("task/" + tenant + "/" + task)
}

// SubjectOrder is an order that is held, indeterminate or resolved.
func SubjectOrder(intentID string) storage.Subject { return storage.Subject("order/" + intentID) }

func subjectGrants(tenant, sub string) storage.Subject {
	return storage.Subject("grants/" + tenant + "/" + sub)
}

// subjectTaskKey is touched by the step that introduces a key: no second step may.
func subjectTaskKey(kid string) storage.Subject { return storage.Subject("taskkey/" + kid) }
