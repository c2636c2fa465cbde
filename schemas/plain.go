package schemas

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// plain is a schema of ours for documents that nearly all senders send. It
// decides nothing by itself: what it takes, the validator takes too, and of all
// else it only says that the validator has to be asked.
type plain struct {
	ref        *plain
	types      []string // nil: any
	values     []any    // enum or const: strings, booleans, null; nil: any
	not        *plain
	oneOf      []*plain // nil: none; exactly one must take it
	properties map[string]*plain
	required   []string
	others     *plain // of members that properties do not name; nil: none may be there
	items      *plain // nil: any
	minItems   int
	maxItems   int
	unique     bool
	minLength  int
	maxLength  int
	pattern    func(string) bool
	format     func(any) error
	minimum    int64
	maximum    int64
	bounded    bool
}

// answer of plain: of what it cannot judge it says so.
type answer int8

const (
	unsure answer = iota
	yes
	no
)

// anything is the schema true.
var anything = &plain{others: nil, maxItems: math.MaxInt, maxLength: math.MaxInt}

// plainOf makes a plain one; nil where the schema has a keyword that it does not
// know, or refers to itself.
func plainOf(s *jsonschema.Schema, above ...*jsonschema.Schema) *plain {
	if s == nil || slices.Contains(above, s) || unknown(s) {
		return nil
	}
	above = append(slices.Clone(above), s)
	if s.Bool != nil {
		if *s.Bool {
			return anything
		}
		return nil
	}
	p := &plain{required: s.Required, unique: s.UniqueItems, maxItems: math.MaxInt, maxLength: math.MaxInt, others: anything}
	ok := true
	part := func(of *jsonschema.Schema, to **plain) {
		if of != nil {
			*to = plainOf(of, above...)
			ok = ok && *to != nil
		}
	}
	part(s.Ref, &p.ref)
	part(s.Not, &p.not)
	part(s.Items2020, &p.items)
	for _, of := range s.OneOf {
		var one *plain
		part(of, &one)
		p.oneOf = append(p.oneOf, one)
	}
	if len(s.Properties) > 0 {
		p.properties = make(map[string]*plain, len(s.Properties))
	}
	for name, of := range s.Properties {
		var prop *plain
		part(of, &prop)
		p.properties[name] = prop
	}
	switch more := s.AdditionalProperties.(type) {
	case nil:
	case bool:
		if !more {
			p.others = nil
		}
	case *jsonschema.Schema:
		part(more, &p.others)
	default:
		return nil
	}
	if s.Types != nil {
		p.types = s.Types.ToStrings()
	}
	return p.bound(s, ok)
}

// bound takes the limits over.
func (p *plain) bound(s *jsonschema.Schema, ok bool) *plain {
	set := func(of *int, to *int) {
		if of != nil {
			*to = *of
		}
	}
	set(s.MinItems, &p.minItems)
	set(s.MaxItems, &p.maxItems)
	set(s.MinLength, &p.minLength)
	set(s.MaxLength, &p.maxLength)
	if s.Pattern != nil {
		p.pattern = matcher(s.Pattern)
	}
	if s.Format != nil {
		p.format = s.Format.Validate
	}
	p.minimum, p.maximum, p.bounded = math.MinInt64, math.MaxInt64, s.Minimum != nil || s.Maximum != nil
	integer := func(of *big.Rat, to *int64) {
		if of != nil {
			ok = ok && of.IsInt() && of.Num().IsInt64()
			*to = of.Num().Int64()
		}
	}
	integer(s.Minimum, &p.minimum)
	integer(s.Maximum, &p.maximum)
	if s.Enum != nil {
		p.values = s.Enum.Values
	}
	if s.Const != nil {
		if p.values != nil {
			return nil
		}
		p.values = []any{*s.Const}
	}
	for _, v := range p.values {
		switch v.(type) {
		case nil, bool, string:
		default:
			return nil
		}
	}
	if !ok {
		return nil
	}
	return p
}

// unknown says that a schema has a keyword beyond those of plain.
func unknown(s *jsonschema.Schema) bool {
	return s.RecursiveRef != nil || s.DynamicRef != nil || s.AllOf != nil || s.AnyOf != nil ||
		s.If != nil || s.Then != nil || s.Else != nil || s.MaxProperties != nil || s.MinProperties != nil || s.PropertyNames != nil ||
		len(s.PatternProperties) > 0 || len(s.Dependencies) > 0 || len(s.DependentRequired) > 0 || len(s.DependentSchemas) > 0 ||
		s.UnevaluatedProperties != nil || s.Contains != nil || s.MinContains != nil || s.MaxContains != nil || s.Items != nil ||
		s.AdditionalItems != nil || len(s.PrefixItems) > 0 || s.UnevaluatedItems != nil || s.ContentSchema != nil ||
		s.ExclusiveMaximum != nil || s.ExclusiveMinimum != nil || s.MultipleOf != nil || len(s.Extensions) > 0 || s.DraftVersion != 2020
}

// judge a value.
func (p *plain) judge(v any) answer {
	if p.ref != nil {
		if a := p.ref.judge(v); a != yes {
			return a
		}
	}
	if p.values != nil && !slices.ContainsFunc(p.values, func(x any) bool { return x == scalarOf(v) }) {
		return no
	}
	if p.not != nil {
		switch p.not.judge(v) {
		case yes:
			return no
		case unsure:
			return unsure
		case no:
		}
	}
	if p.oneOf != nil {
		if a := p.judgeOne(v); a != yes {
			return a
		}
	}
	if p.format != nil && p.format(v) != nil {
		return no
	}
	switch v := v.(type) {
	case string:
		return p.text(v)
	case json.Number:
		return p.number(string(v))
	case map[string]any:
		return p.object(v)
	case []any:
		return p.array(v)
	case bool:
		return p.is("boolean")
	case nil:
		return p.is("null")
	default:
		return unsure
	}
}

// judgeOne asks all of oneOf: a second yes is a no.
func (p *plain) judgeOne(v any) answer {
	taken := no
	for _, of := range p.oneOf {
		switch of.judge(v) {
		case unsure:
			return unsure
		case yes:
			if taken == yes {
				return no
			}
			taken = yes
		case no:
		}
	}
	return taken
}

// scalarOf is a value that may be compared; all others equal nothing.
func scalarOf(v any) any {
	switch v.(type) {
	case nil, bool, string:
		return v
	}
	return notScalar{}
}

type notScalar struct{}

func (p *plain) is(kind string) answer {
	if p.types == nil || slices.Contains(p.types, kind) {
		return yes
	}
	return no
}

func (p *plain) text(s string) answer {
	if p.is("string") != yes || p.pattern != nil && !p.pattern(s) {
		return no
	}
	if p.minLength > 0 || p.maxLength < len(s) {
		if n := utf8.RuneCountInString(s); n < p.minLength || n > p.maxLength {
			return no
		}
	}
	return yes
}

// number judges integers as they are commonly written.
func (p *plain) number(text string) answer {
	if len(text) > 15 {
		return unsure
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if p.bounded || p.types != nil && !slices.Contains(p.types, "number") {
			return unsure
		}
		return yes
	}
	if p.is("integer") != yes && p.is("number") != yes || n < p.minimum || n > p.maximum {
		return no
	}
	return yes
}

func (p *plain) object(v map[string]any) answer {
	if p.is("object") != yes {
		return no
	}
	for _, name := range p.required {
		if _, there := v[name]; !there {
			return no
		}
	}
	for name, x := range v {
		of, named := p.properties[name]
		if !named {
			of = p.others
		}
		switch {
		case of == nil:
			return no
		case of == anything:
		default:
			if a := of.judge(x); a != yes {
				return a
			}
		}
	}
	return yes
}

func (p *plain) array(v []any) answer {
	if p.is("array") != yes || len(v) < p.minItems || len(v) > p.maxItems {
		return no
	}
	for i, x := range v {
		if p.items != nil {
			if a := p.items.judge(x); a != yes {
				return a
			}
		}
		if !p.unique {
			continue
		}
		if scalarOf(x) == (notScalar{}) {
			return unsure
		}
		if slices.ContainsFunc(v[:i], func(y any) bool { return scalarOf(y) == x }) {
			return no
		}
	}
	return yes
}
