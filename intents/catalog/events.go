package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// events that our own executors may report of an intent, by its type. Events of the
// router, such as approval.decided, are not among them: a report of an executor must not
// look like a decision.
var events = map[string][]string{
	"resource.read": {"skill.called", "large_response.detected"},
	"skill.call":    {"skill.called", "skill.cached", "skill.principal_mismatch", "envelope.type_mismatch", "envelope.version_mismatch", "large_response.detected"},
	"exec_python":   {"python_script.executed"},
	"write_memory":  {"memory.written", "memory.upsert", "memory.lock_timeout", "contract_violation"},
}

// EventRedacted reports what was removed from a result, by kind, because a policy says so. Every type
// may have it.
const EventRedacted = "result.redacted"

// vendorEvent is what follows the executor's name in an event of its own.
var vendorEvent = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)

// Reports reports whether the row's executor may report an event: one of the type's,
// or, for a vendor's executor (x-<name>), x.<name>.<event>.
func (r Row) Reports(event string) bool {
	name, foreign := strings.CutPrefix(r.Executor, "x-")
	if !r.Vendor() || !foreign {
		return !r.Vendor() && (slices.Contains(events[r.Type], event) || event == EventRedacted)
	}
	own, ok := strings.CutPrefix(event, "x."+name+".")
	return ok && vendorEvent.MatchString(own)
}

// Kinds of events that other systems may receive, by the subjects that they are published on.
const (
	EventsOfSubagents = "subagent"
	EventsOfSteps     = "step"
	EventsOfCancels   = "cancel"
	EventsOfMemory    = "memory"
)

// eventKinds are all events of agent_events but those of vendors, with their kind; none: they
// are in the documents alone.
var eventKinds = map[string]string{
	"subagent_a.spawned":    EventsOfSubagents,
	"subagent_b.spawned":    EventsOfSubagents,
	"subagent.insufficient": EventsOfSubagents,
	"subagent.finish":       EventsOfSubagents,

	"plan.received":      EventsOfSteps,
	"plan.revised":       EventsOfSteps,
	"plan.persisted":     EventsOfSteps,
	"plan.complete":      EventsOfSteps,
	"plan.failed":        EventsOfSteps,
	"plan.needs_input":   EventsOfSteps,
	"replan.triggered":   EventsOfSteps,
	"step_N.started":     EventsOfSteps,
	"step_N.complete":    EventsOfSteps,
	"step_N.failed":      EventsOfSteps,
	"intent.denied":      EventsOfSteps,
	"intent.held":        EventsOfSteps,
	"intent.failed":      EventsOfSteps,
	"approval.requested": EventsOfSteps,
	"approval.decided":   EventsOfSteps,
	"approval.released":  EventsOfSteps,
	"approval.expired":   EventsOfSteps,

	"plan.cancelled": EventsOfCancels,

	"memory.written":      EventsOfMemory,
	"memory.upsert":       EventsOfMemory,
	"memory.lock_timeout": EventsOfMemory,
	"contract_violation":  EventsOfMemory,

	"user_message.received":     "",
	"reply.sent":                "",
	"skill.called":              "",
	"skill.cached":              "",
	"skill.principal_mismatch":  "",
	"envelope.type_mismatch":    "",
	"envelope.version_mismatch": "",
	"large_response.detected":   "",
	"python_script.executed":    "",
	EventRedacted:               "",
	EventLine:                   "",
}

// ofStep is an event of a step, whose number is in its name.
var ofStep = regexp.MustCompile(`^step_\d+\.`)

// EventKind is the kind of an event, if other systems may receive it.
func EventKind(event string) string { return eventKinds[ofStep.ReplaceAllString(event, "step_N.")] }
