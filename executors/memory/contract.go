package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
)

// contractViolation describes a mismatch to the caller. Actual is a shape: it never contains a
// value of the data.
type contractViolation struct {
	Status   string `json:"status"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
}

// checkContract validates data against the step's return_spec; data that does not match
// is not written. A mismatch is CONTRACT_VIOLATION, a spec that does not compile
// MALFORMED_ARGS.
func checkContract(ctx context.Context, task *intents.TaskScopeClaim, data json.RawMessage) error {
	var spec catalog.ReturnSpec
	if json.Unmarshal(task.ReturnSpec, &spec) != nil || spec.Shape == "" {
		return executors.Fail(intents.MalformedArgs, "the step has no return_spec to check against")
	}
	source, err := schemas.CompileShape(spec.Shape)
	if err != nil {
		return executors.Fail(intents.MalformedArgs, "the step's return_spec cannot be read: "+err.Error())
	}
	schema, err := schemas.Compile(source)
	if err != nil {
		return executors.Fail(intents.MalformedArgs, "the step's return_spec cannot be read: "+err.Error())
	}
	broken := schema.ValidateWithin(ctx, data)
	if len(broken) == 0 {
		return nil
	}
	actual := shapeOf(data)
	at := cmp.Or(broken[0].Pointer, "the top")
	return executors.Fail(intents.ContractViolation, "the data does not match return_spec at "+at+": "+broken[0].Reason).
		WithDetails(contractViolation{"contract_violation", spec.Shape, actual}).
		WithEvent("contract_violation", map[string]any{"expected_shape": spec.Shape, "actual_shape": actual, "step_index": task.Step})
}

// shapeOf describes the shape of a document in the notation of return_spec.
func shapeOf(data []byte) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return "text"
	}
	return visible.Cut(infer(v, 0), maxShape)
}

// Bounds of an inferred shape: enough to see what is wrong.
const (
	maxShape    = 2 << 10 // bytes
	maxDepth    = 4
	maxMembers  = 24
	maxElements = 64 // of an array that are read
	maxKinds    = 3  // of elements; an array of more is array<any>
)

// names are the member names that a shape shows; any other may be data.
var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// infer describes the shape of a value that was decoded with json.Number.
func infer(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return "number"
		}
		return "integer"
	case []any:
		return inferArray(v, depth)
	case map[string]any:
		return inferObject(v, depth)
	}
	return "any"
}

func inferArray(v []any, depth int) string {
	if len(v) == 0 || depth == maxDepth {
		return "array"
	}
	var kinds []string
	for _, e := range v[:min(len(v), maxElements)] {
		if kind := infer(e, depth+1); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > maxKinds {
		return "array<any>"
	}
	return "array<" + strings.Join(kinds, "|") + ">"
}

func inferObject(v map[string]any, depth int) string {
	if depth == maxDepth {
		return "object"
	}
	var members []string
	hidden := false
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if len(members) == maxMembers || !names.MatchString(name) {
			hidden = true
			continue
		}
		members = append(members, name+": "+infer(v[name], depth+1))
	}
	if hidden {
		members = append(members, "…")
	}
	return "{" + strings.Join(members, ", ") + "}"
}
