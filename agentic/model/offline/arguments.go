package offline

import (
	"encoding/json"
	"fmt"
	"slices"
)

// arguments reads the input of a skill from the words of a request, each written as name=value,
// and reports missing or unknown arguments.
func arguments(s skill, ws []word) (input map[string]any, problem string) {
	input = map[string]any{}
	in := readSchema(s.InputSchema)
	for _, w := range ws {
		p := in.Properties[w.key]
		var v any = w.text
		switch {
		case w.key == "":
			continue
		case p == nil:
			return nil, fmt.Sprintf("%s has no argument %q.", s.Name, w.key)
		case p.resolve(in).kind() != "string" && json.Unmarshal([]byte(w.text), &v) != nil:
			return nil, fmt.Sprintf("%s cannot take %q as %s.", s.Name, w.text, w.key)
		}
		input[w.key] = v
	}
	for _, name := range in.members() {
		if p := in.Properties[name].resolve(in); input[name] == nil && p.Default != nil && slices.Contains(in.Required, name) {
			input[name] = p.Default
		}
		if input[name] == nil && slices.Contains(in.Required, name) {
			return nil, fmt.Sprintf("%s needs %q, and the request does not say it. Write for example %q.", s.Name, name, name+"=…")
		}
	}
	return input, ""
}
