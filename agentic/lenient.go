package agentic

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"aob.dev/writ/schemas"
)

// withoutUnknown returns the arguments of a call without members that the schema of its tool does
// not know, and names these. Only tools of this system and pure skills get this: for a skill that
// changes something, a misspelt dry_run must not become a change.
func withoutUnknown(check *schemas.Schema, args json.RawMessage) (rest json.RawMessage, dropped []string) {
	for { // a validator reports some of many
		before := len(dropped)
		for _, v := range check.ValidateBytes(args) {
			if v.Reason != schemas.UnknownMember {
				continue
			}
			if shorter, err := sjson.DeleteBytes(args, pathOf(v.Pointer)); err == nil && len(shorter) < len(args) {
				args, dropped = shorter, append(dropped, v.Pointer)
			}
		}
		if len(dropped) == before {
			return args, dropped
		}
	}
}

// pathOf is a JSON Pointer as sjson writes it.
func pathOf(pointer string) string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, p := range parts {
		parts[i] = gjson.Escape(strings.NewReplacer("~1", "/", "~0", "~").Replace(p))
	}
	return strings.Join(parts, ".")
}
