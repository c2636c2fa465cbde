package schemas

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"aob.dev/writ/internal/visible"
)

// Violation is one way in which a document breaks its schema. Pointer is a JSON Pointer into the
// document; for a missing or an unknown member, the pointer that the member has or would have.
// Reason is worded from the schema's keyword and never contains a value of the document.
type Violation struct {
	Pointer string `json:"pointer"`
	Reason  string `json:"reason"`
}

// UnknownMember is the reason for a member that a schema does not name; Names lists those it
// names.
const UnknownMember = "unknown member"

func sortViolations(v []Violation) {
	slices.SortFunc(v, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Reason, b.Reason))
	})
}

// MaxViolations is how many violations of one document are reported.
const MaxViolations = 100

// Bounds of what is examined and reported. If there are more than maxLeaves findings, those
// reported are arbitrary.
const (
	maxLeaves  = 1 << 12
	maxPointer = 1 << 10 // bytes; a deeper place is reported as its nearest ancestor within the bound
	maxReason  = 1 << 10
)

// collect flattens the validator's tree to its leaves. A failed anyOf, oneOf or not is one leaf:
// the requirements of each branch would mislead.
func collect(e *jsonschema.ValidationError, schema any) []Violation {
	var out []Violation
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		switch e.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf, *kind.Not, *kind.Contains, *kind.MinContains, *kind.MaxContains, *kind.PropertyNames:
		default:
			if len(e.Causes) > 0 {
				for _, c := range e.Causes {
					walk(c)
				}
				return
			}
		}
		if len(out) < maxLeaves {
			out = append(out, leaf(e, schema)...)
		}
	}
	walk(e)
	sortViolations(out)
	out = slices.Compact(out)
	return out[:min(len(out), MaxViolations)]
}

// leaf words one violation, or one for each member that it names.
func leaf(e *jsonschema.ValidationError, schema any) []Violation {
	at := pointer(e.InstanceLocation)
	members := func(names []string, reason string) []Violation {
		names = slices.Sorted(slices.Values(names)) // the same of many are reported each time
		names = names[:min(len(names), MaxViolations)]
		out := make([]Violation, len(names))
		for i, name := range names {
			out[i] = Violation{Pointer: pointer(append(slices.Clip(e.InstanceLocation), name)), Reason: reason}
		}
		return out
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return members(k.Missing, "is required")
	case *kind.DependentRequired:
		return members(k.Missing, "is required here")
	case *kind.Dependency:
		return members(k.Missing, "is required here")
	case *kind.AdditionalProperties:
		return members(k.Properties, UnknownMember)
	case *kind.PropertyNames:
		return members([]string{k.Property}, "member name is not allowed")
	case *kind.OneOf:
		return []Violation{{at, visible.Cut(alternatives(e, schema), maxReason)}}
	}
	return []Violation{{at, visible.Cut(reason(e.ErrorKind), maxReason)}}
}

// reason words the keywords that concern the value itself.
func reason(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "must be one of " + display(k.Want)
	case *kind.Const:
		return "must be " + display([]any{k.Want})
	case *kind.Format:
		return "must be in format " + k.Want
	case *kind.Pattern:
		if strings.HasPrefix(k.Want, "^[^\x00") { // a class that is unreadable
			return "must have no control characters and no invisible ones"
		}
		return "must match " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d members", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d members", k.Want)
	case *kind.UniqueItems:
		return "items must be unique"
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.ExclusiveMinimum:
		return "must be more than " + k.Want.RatString()
	case *kind.ExclusiveMaximum:
		return "must be less than " + k.Want.RatString()
	case *kind.MultipleOf:
		return "must be a multiple of " + k.Want.RatString()
	case *kind.AdditionalItems:
		return "has too many items"
	case *kind.Contains, *kind.MinContains:
		return "lacks an item that it must contain"
	case *kind.MaxContains:
		return "has too many items of a kind"
	case *kind.AnyOf:
		return "must have one of the allowed forms"
	case *kind.Not:
		return "has a form that is not allowed"
	case *kind.FalseSchema:
		return "is not allowed"
	}
	return "is not valid"
}

// display lists what the schema allows, as far as it fits into a reason.
func display(want []any) string {
	var words []string
	said := 0
	for _, w := range want {
		if said > maxReason {
			break
		}
		switch w := w.(type) {
		case string:
			words = append(words, strconv.Quote(visible.Cut(w, maxReason)))
		case nil:
			words = append(words, "null")
		case []any, map[string]any:
			words = append(words, "the constant of the schema")
		default:
			words = append(words, fmt.Sprint(w))
		}
		said += len(words[len(words)-1])
	}
	return strings.Join(words, ", ")
}

// alternatives words a failed oneOf. If its branches differ only in their required members, as
// in "exactly one of data and from", it names them.
func alternatives(e *jsonschema.ValidationError, schema any) string {
	const general = "must have exactly one of the allowed forms"
	node, ok := resolve(schema, e.SchemaURL).(map[string]any)
	if !ok {
		return general
	}
	branches, _ := node["oneOf"].([]any)
	var names []string
	for _, b := range branches {
		branch, _ := b.(map[string]any)
		required, _ := branch["required"].([]any)
		if len(required) == 0 {
			return general
		}
		name, _ := required[0].(string)
		names = append(names, name)
	}
	if len(names) == 0 {
		return general
	}
	return "must have exactly one of the members " + strings.Join(names, ", ")
}

// resolve follows the fragment of a schema location within one document.
func resolve(tree any, location string) any {
	_, fragment, _ := strings.Cut(location, "#")
	if fragment == "" {
		return tree
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}
		token = Unescape(token)
		switch node := tree.(type) {
		case map[string]any:
			tree = node[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			tree = node[i]
		default:
			return nil
		}
	}
	return tree
}

// pointer joins tokens to a JSON Pointer (RFC 6901 §3), up to maxPointer bytes.
func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		if b.Len()+len(t) >= maxPointer {
			break
		}
		b.WriteByte('/')
		b.WriteString(Escape(t))
	}
	return b.String()
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// Escape converts the name of a member to a token of a JSON Pointer.
func Escape(name string) string { return escaper.Replace(name) }

// Unescape decodes a token of a JSON Pointer.
func Unescape(token string) string { return unescaper.Replace(token) }
