package skills

import (
	"context"

	"golang.org/x/mod/semver"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// mistyped checks a payload against the types that the tenant's agents declare, by domain type and
// enricher. Another minor version is the same type; the payload must match all of several with one
// major version. If no agent declares a type, only the approved output schema counts. event is nil
// for a payload that may be shown; why is for operators.
func mistyped(ctx context.Context, in invocation, e *mcp.Envelope) (event *intents.ReportedEvent, why string) {
	types := in.intent.Ticket.Types
	if len(types) == 0 {
		return nil, ""
	}
	about := map[string]any{"skill_id": in.pin.Skill}
	wrongType, wrongVersion := executors.NewEvent("envelope.type_mismatch", about), executors.NewEvent("envelope.version_mismatch", about)
	event, why = &wrongType, "no agent declares this type"
	for _, t := range types {
		if t.DomainType != e.DomainType || t.EnricherID != e.EnricherID {
			continue
		}
		if major := semver.Major("v" + e.Version); major == "" || major != semver.Major("v"+t.Version) {
			if event != nil {
				event, why = &wrongVersion, "agents declare version "+t.Version
			}
			continue
		}
		schema, err := schemas.Compile(t.Schema)
		if err != nil {
			return &wrongType, "its schema cannot be used: " + err.Error()
		}
		if found := schema.ValidateWithin(ctx, e.Payload); len(found) > 0 {
			return &wrongType, "the payload does not match its schema at " + found[0].Pointer + ": " + found[0].Reason
		}
		event, why = nil, ""
	}
	return event, why
}
