package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// finding is one fault of an intent.
type finding struct {
	Pointer  string `json:"pointer"`
	Reason   string `json:"reason"`
	ByItself bool   `json:"sign_adds,omitempty"` // writ intent sign adds it: the intent is not at fault
}

func intentLint(c *command) {
	var f catalogFlags
	f.add(c)
	c.placeFlags()
	role := c.Flags().String("role", "", "role of the key that will sign it")
	c.answer = func(args []string) (answer, error) {
		raw, err := c.input(args)
		if err != nil {
			return answer{}, err
		}
		types, err := f.with(c.Context(), typeIn(raw), c.url)
		if err != nil {
			return answer{}, err
		}
		found, err := lint(bytes.TrimSpace(raw), types, intents.Role(*role))
		if err != nil {
			return answer{}, malformed(err)
		}
		return lintAnswer(painter(c.std, c.std.Out), found), nil
	}
}

func lintAnswer(p paint, found []finding) answer {
	valid := !slices.ContainsFunc(found, func(x finding) bool { return !x.ByItself })
	a := answer{end: unless(valid, "not valid"), data: struct {
		Valid    bool      `json:"valid"`
		Findings []finding `json:"findings"`
	}{valid, append([]finding{}, found...)}}
	for _, x := range found {
		a.text += fmt.Sprintf("%s: %s\n", p.bold(printable(cmp.Or(x.Pointer, "/"))), printable(x.Reason))
	}
	switch {
	case len(found) == 0:
		a.note = "nothing is wrong with the intent\n"
	case valid:
		a.note = "nothing else is missing: writ intent sign adds these\n"
	}
	return a
}

// lint finds all faults at once. It returns an error if the text is not JSON.
func lint(raw []byte, types *catalog.Catalog, role intents.Role) ([]finding, error) {
	found, err := lintText(raw)
	if err != nil {
		return nil, err
	}
	if len(raw) > intents.MaxSize {
		found = append(found, finding{"", fmt.Sprintf("has %d bytes, and at most %d are accepted", len(raw), intents.MaxSize), false})
	}
	tree, err := decoded(raw)
	if err != nil {
		return nil, err
	}
	top, ok := tree.(map[string]any)
	if !ok {
		return append(found, finding{"", "is not a JSON object: see writ intent new", false}), nil
	}
	shape, err := schemas.Lookup(schemas.Base + "envelope.json")
	if err != nil {
		return nil, err
	}
	found = append(found, lintShape(shape, top)...)
	more, err := lintType(top, types, role)
	found = append(found, more...)
	if sig, signed := top["sig"]; signed && len(found) == 0 {
		if _, err := intents.Parse(raw); err != nil {
			found = append(found, finding{"/sig", reasonOf(err), false})
		} else if member(top, "actor", "grant") == nil && !signedByOperator(top, types, role) {
			found = append(found, finding{"/actor/grant", "is required: the key signs for a user, and the grant says that it may", false})
		}
	} else if text, _ := sig.(string); strings.HasPrefix(text, intents.RawPrefix) && member(top, "actor", "kid") == nil {
		found = append(found, finding{"/actor/kid", "is required: a raw signature names its key here", false})
	}
	return found, err
}

// signedByOperator reports whether an operator's key may have signed an intent.
func signedByOperator(top map[string]any, types *catalog.Catalog, role intents.Role) bool {
	typ, _ := member(top, "intent", "type").(string)
	row, known := types.Lookup(typ)
	return (role == "" || role == intents.RoleOperator) && (!known || row.MaySign(intents.RoleOperator))
}

// lintShape checks an intent against the schema of the envelope. A missing sig is not a fault, nor
// are members that `writ intent sign` adds.
func lintShape(shape *schemas.Schema, top map[string]any) (found []finding) {
	_, signed := top["sig"]
	by := shape
	if !signed {
		by = schemas.Unsigned()
	}
	for _, v := range by.Validate(top) {
		x := finding{v.Pointer, nearest(shape, v), !signed && filledIn(top, v.Pointer)}
		if v.Pointer == "/sig" {
			x.Reason = "must be " + intents.SigForms
		}
		found = append(found, x)
	}
	return found
}

// nearest is the reason of a violation, which names the nearest member in the place of an unknown one.
func nearest(shape *schemas.Schema, v schemas.Violation) string {
	end := strings.LastIndexByte(v.Pointer, '/')
	if end < 0 || v.Reason != schemas.UnknownMember {
		return v.Reason
	}
	return v.Reason + didYouMean(schemas.Unescape(v.Pointer[end+1:]), shape.Part(v.Pointer[:end]).Members())
}

// member of an object of an intent; nil: it is not there.
func member(top map[string]any, object, name string) any {
	o, _ := top[object].(map[string]any)
	return o[name]
}

// filledIn reports whether a member is missing or empty and `writ intent sign` fills it in.
func filledIn(top map[string]any, pointer string) bool {
	switch pointer {
	case "/constraints/issued_at", "/constraints/idempotency_key", "/constraints/audience":
	default:
		return false
	}
	c, ok := top["constraints"].(map[string]any)
	v := c[strings.TrimPrefix(pointer, "/constraints/")]
	return ok && (v == nil || v == "")
}

// typeIn is the type of an intent, as far as it can be read.
func typeIn(raw []byte) string {
	var intent struct {
		Intent struct {
			Type string `json:"type"`
		} `json:"intent"`
	}
	_ = json.Unmarshal(raw, &intent) // lint reports its faults
	return intent.Intent.Type
}

func reasonOf(err error) string {
	if r, ok := errors.AsType[*intents.Refusal](err); ok {
		return r.Reason
	}
	return "must be a string: <protected header>..<signature>"
}

// lintType checks an intent against the row of its type.
func lintType(top map[string]any, types *catalog.Catalog, role intents.Role) ([]finding, error) {
	in, _ := top["intent"].(map[string]any)
	typ, _ := in["type"].(string)
	if typ == "" {
		return nil, nil // the envelope's schema has reported it
	}
	row, ok := types.Lookup(typ)
	if !ok {
		return []finding{{"/intent/type", "no such type in the catalog" + didYouMeanType(typ, types), false}}, nil
	}
	var found []finding
	if role != "" && !row.MaySign(role) {
		found = append(found, finding{"/intent/type", fmt.Sprintf("a %s key may not sign %s, but one of %v", role, typ, row.Signers), false})
	}
	if args, ok := in["args"]; ok {
		s, err := row.ArgsSchema()
		if err != nil {
			return nil, err
		}
		for _, v := range s.Validate(args) {
			found = append(found, finding{"/intent/args" + v.Pointer, nearest(s, v), false})
		}
	}
	c, _ := top["constraints"].(map[string]any)
	if ttl, ok := c["ttl_sec"].(json.Number); ok {
		most := int64(row.TTL().Seconds())
		if n, err := ttl.Int64(); err == nil && n > most && n <= 300 {
			found = append(found, finding{"/constraints/ttl_sec", fmt.Sprintf("%s accepts at most %d", typ, most), false})
		}
	}
	if declared, ok := c["capabilities"].([]any); ok && !declares(declared, row.Capability) {
		found = append(found, finding{"/constraints/capabilities", "the declared capabilities are an upper limit, and " + typ + " needs " + row.Capability, false})
	}
	return found, nil
}

// declares reports whether the needed capability is declared, for all or some resources.
func declares(declared []any, needed string) bool {
	return slices.ContainsFunc(declared, func(d any) bool {
		s, _ := d.(string)
		return s == needed || strings.HasPrefix(s, needed+":")
	})
}

// lintText finds the first thing that strict I-JSON forbids, as the router does: a duplicate
// member, a number that RFC 8785 would change, bytes that are not UTF-8.
func lintText(raw []byte) ([]finding, error) {
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return nil, fmt.Errorf("not JSON: %v", err)
	}
	var r *intents.Refusal
	if _, err := intents.Canonical(raw); errors.As(err, &r) {
		return []finding{{r.Pointer, r.Reason, false}}, nil
	}
	return nil, nil
}

func decoded(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	return v, dec.Decode(&v)
}

// didYouMean is ": did you mean …?" with the nearest name, if one is near.
func didYouMean(name string, known []string) string {
	near := schemas.Nearest(name, known)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", near)
}

// canonicalObject is the canonical form of a JSON object.
func canonicalObject(raw json.RawMessage) (json.RawMessage, error) {
	canonical, err := intents.Canonical(raw)
	if err != nil {
		return nil, err
	}
	if len(canonical) == 0 || canonical[0] != '{' {
		return nil, errors.New("must be a JSON object")
	}
	return canonical, nil
}
