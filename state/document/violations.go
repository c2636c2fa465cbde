package document

import (
	"slices"
	"strings"

	"aob.dev/writ/schemas"
)

// Define reads a text in YAML or JSON that must match a schema of ours, and passes it to use.
// Faults are reported by file and line.
func Define(file string, text []byte, schema string, use func(doc []byte, lines Lines) Faults) Faults {
	doc, lines, fault := Read(text)
	var found Faults
	if fault != nil {
		found = Faults{*fault}
	} else if found = Violations(schema, doc); len(found) == 0 {
		found = use(doc, lines)
	}
	for i := range found {
		found[i].File = file
		if found[i].Line == 0 {
			found[i].Line = lines.Line(found[i].Pointer)
		}
	}
	return found
}

// Violations of a schema of ours, with what to do about an unknown member.
func Violations(id string, doc []byte) Faults {
	schema, err := schemas.Lookup(schemas.Base + id)
	if err != nil {
		return Faults{{Reason: err.Error()}}
	}
	var found Faults
	for _, v := range schema.ValidateBytes(doc) {
		if slices.ContainsFunc(found, func(f Fault) bool { return f.Pointer == v.Pointer }) {
			continue // one mistake that two rules of the schema find
		}
		reason := v.Reason
		if reason == schemas.UnknownMember {
			end := strings.LastIndexByte(v.Pointer, '/')
			reason = unknown(v.Pointer[end+1:], schema.Part(v.Pointer[:end]).Members())
		}
		found = append(found, Fault{Pointer: v.Pointer, Reason: reason})
	}
	return found
}

func unknown(name string, known []string) string {
	near := schemas.Nearest(name, known)
	switch {
	case len(known) == 0:
		return "is no name that may stand here"
	case near != "":
		return "unknown member, did you mean " + near + "?"
	}
	return "unknown member, known are " + strings.Join(known, ", ")
}
