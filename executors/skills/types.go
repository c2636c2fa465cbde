package skills

import (
	"context"

	"golang.org/x/mod/semver"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Events of an enricher response whose payload nobody is shown.
const (
	versionMismatch = "envelope.version_mismatch" // its type is known in other major versions
	typeMismatch    = "envelope.type_mismatch"    // its type is unknown, or the payload is not of it
)

// mistyped holds a payload to the types that the tenant's agents declare, by domain type and
// enricher. Another minor version is the same type; of several with one major version the
// payload must match each. Where no agent declares any type, the output schema that was
// approved is all that counts. event is empty for a payload that may be shown; why is for
// operators.
func mistyped(ctx context.Context, types []intents.PayloadType, e *mcp.Envelope) (event, why string) {
	if len(types) == 0 {
		return "", ""
	}
	event, why = typeMismatch, "no agent declares this type"
	for _, t := range types {
		if t.DomainType != e.DomainType || t.EnricherID != e.EnricherID {
			continue
		}
		if major := semver.Major("v" + e.Version); major == "" || major != semver.Major("v"+t.Version) {
			if event == typeMismatch {
				event, why = versionMismatch, "agents declare version "+t.Version
			}
			continue
		}
		schema, err := schemas.Compile(t.Schema)
		if err != nil {
			return typeMismatch, "its schema cannot be used: " + err.Error()
		}
		if found := schema.ValidateWithin(ctx, e.Payload); len(found) > 0 {
			return typeMismatch, "the payload does not match its schema at " + found[0].Pointer + ": " + found[0].Reason
		}
		event, why = "", ""
	}
	return event, why
}
