package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// events that our own executors may report of an order, by its type. Events of the
// router, such as approval.decided, are not among them: a report of an executor must not
// look like a decision.
var events = map[string][]string{
	"skill.call":   {"skill.called", "skill.cached", "skill.principal_mismatch", "envelope.type_mismatch", "envelope.version_mismatch", "large_response.detected"},
	"exec_python":  {"python_script.executed"},
	"write_memory": {"memory.written", "memory.upsert", "memory.lock_timeout", "contract_violation"},
}

// vendorEvent is what follows the executor's name in an event of its own.
var vendorEvent = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)

// Reports says whether the row's executor may report an event: one of the type's,
// or, where the executor is somebody else's (x-<name>), x.<name>.<event>.
func (r Row) Reports(event string) bool {
	name, foreign := strings.CutPrefix(r.Executor, "x-")
	if !r.Vendor() || !foreign {
		return !r.Vendor() && slices.Contains(events[r.Type], event)
	}
	own, ok := strings.CutPrefix(event, "x."+name+".")
	return ok && vendorEvent.MatchString(own)
}
