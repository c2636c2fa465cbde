package schemas

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of one validation with a foreign schema, in visits of a schema object or equivalent
// (some 150 ns each). A few $ref can double the work at each level of a small document, so the
// bound grows with the document: ordinary data takes about five a value. The charge is for the
// work that the document causes: a bound on what the schema permits would refuse honest data,
// see TestUnionsAreWithinBudget.
const (
	leastWork      = 1 << 17
	workPerValue   = 32
	MaxForeignWork = 1 << 21
	// reportWork bounds the second pass, which finds the violations and stores something for
	// each.
	reportWork = 1 << 18
)

// errSpent ends a validation that does too much, by panic: the validator has no other way to
// stop. machine.run recovers it.
var errSpent = errors.New("schemas: validation takes too much work")

// budget counts the work of the one validation that a machine does at a time.
type budget struct {
	ctx        context.Context
	left       int
	sinceCheck int // charges since ctx was last checked
	report     bool
	deep       int // additional cost of a finding in a deep document: it stores its path
}

// start begins a validation of a document.
func (b *budget) start(ctx context.Context, doc extent, report bool) {
	*b = budget{ctx: ctx, left: min(MaxForeignWork, leastWork+workPerValue*doc.values+doc.text/2), report: report}
	if report {
		b.left, b.deep = reportWork, doc.depth/8
	}
}

// lookAfter is the number of charges between two checks of the context.
const lookAfter = 1 << 10

// spend panics once the budget is exhausted or the time is over.
func (b *budget) spend(n int) {
	b.left -= n + b.deep
	if b.sinceCheck++; b.sinceCheck%lookAfter == 0 && b.ctx.Err() != nil {
		b.left = -1
	}
	if b.left < 0 {
		panic(errSpent)
	}
}

// extent is the size of a document.
type extent struct {
	values, text, depth int
}

func extentOf(v any) extent {
	e := extent{}
	e.add(v, 1)
	return e
}

func (e *extent) add(v any, depth int) {
	e.values++
	e.depth = max(e.depth, depth)
	switch v := v.(type) {
	case string:
		e.text += len(v)
	case []any:
		for _, x := range v {
			e.add(x, depth+1)
		}
	case map[string]any:
		for name, x := range v {
			e.text += len(name)
			e.add(x, depth+1)
		}
	}
}

// meters adds a charge to every schema object as it is compiled, and computes the costs once all
// are compiled.
type meters struct {
	budget   *budget
	patterns *patterns
	charges  map[*jsonschema.Schema]*charge
}

// vocabulary has no keyword: it wraps the format of a schema object, because the validator calls
// that before it descends.
func (m *meters) vocabulary() *jsonschema.Vocabulary {
	yes := true
	return &jsonschema.Vocabulary{
		URL:    "urn:writ:budget",
		Schema: &jsonschema.Schema{Bool: &yes},
		Compile: func(ctx *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
			s := ctx.Enqueue(nil)
			c := &charge{}
			m.charges[s] = c
			s.Format = m.wrap(c, s.Format)
			return nil, nil
		},
	}
}

func (m *meters) wrap(c *charge, asserted *jsonschema.Format) *jsonschema.Format {
	out := &jsonschema.Format{Name: "unsaid"}
	if asserted != nil {
		out.Name = asserted.Name
	}
	out.Validate = func(v any) error {
		m.budget.spend(c.cost(v, m.budget.report))
		if asserted == nil {
			return nil
		}
		return asserted.Validate(v)
	}
	return out
}

// compute computes the charges of all schema objects.
func (m *meters) compute() {
	stack := 1 + longest(m.charges)/32
	unevaluated := false
	for s := range m.charges {
		unevaluated = unevaluated || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil
	}
	for s, c := range m.charges {
		c.compute(s, m.patterns, stack, unevaluated)
	}
}

// charge is the cost of a visit of one schema object. A visit pays in advance for the type,
// const and enum of the visits that it causes, since a visit that fails there ends before it is
// charged.
type charge struct {
	self   int // for any value
	names  int // required names that an object may lack; each is a finding
	member int // for each member of an object
	item   int // for each item of an array
	key    int // instructions of the patterns that each member name is matched with
	text   int // instructions of the pattern that a string is matched with
	unique bool
}

func (c *charge) compute(s *jsonschema.Schema, p *patterns, stack int, unevaluated bool) {
	below := alike(s)
	c.self = stack
	for _, x := range below {
		c.self += ahead(x)
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		c.self += 8 * stack // searches all scopes for its target
	}
	c.names = requires(s)
	c.self += (c.names + len(s.Dependencies) + len(s.DependentSchemas) + len(s.DependentRequired)) / 4
	for re, x := range s.PatternProperties {
		c.member += 1 + ahead(x)
		c.key += p.size(re)
	}
	widest := 0
	for _, x := range s.Properties {
		widest = max(widest, ahead(x))
	}
	c.member += 1 + widest + ahead(schemaOf(s.AdditionalProperties)) + ahead(s.PropertyNames) + ahead(s.UnevaluatedProperties)
	c.item = 1 + ahead(s.Items2020) + ahead(schemaOf(s.Items)) + ahead(schemaOf(s.AdditionalItems)) + ahead(s.Contains) + ahead(s.UnevaluatedItems)
	widest = 0
	for _, x := range tuple(s) {
		widest = max(widest, ahead(x))
	}
	c.item += widest
	if unevaluated { // each visit of the same value lists its members or items
		c.member += len(below)
		c.item += len(below)
	}
	if s.Pattern != nil {
		c.text = p.size(s.Pattern)
	}
	c.unique = s.UniqueItems
}

// cost is the charge for visiting a value.
func (c *charge) cost(v any, report bool) int {
	n := c.self
	switch v := v.(type) {
	case map[string]any:
		bytes := 0
		for name, x := range v {
			bytes += len(name)
			n += c.member * numeral(x)
		}
		n += bytes * c.key >> 8
		if report {
			n += c.names
		}
	case []any:
		for _, x := range v {
			n += c.item * numeral(x)
		}
		if c.unique {
			n += min(len(v), 20) * weight(v)
		}
	case string:
		n += len(v)>>8 + len(v)*c.text>>8
	case json.Number:
		n += numeral(v)
	}
	return n
}

// numeral is the cost of a value as a multiple of the common one: the validator parses numbers
// as exact rationals, each time again.
func numeral(v any) int {
	n, ok := v.(json.Number)
	if !ok || len(n) < 4 {
		return 1
	}
	if len(n) > 32 || strings.ContainsAny(string(n), "eE") {
		return 16
	}
	return 1
}

// weight is the cost of comparing with a value that a schema contains.
func weight(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) >> 6
	case json.Number:
		n += 8 * numeral(v)
	case []any:
		for _, x := range v {
			n += weight(x)
		}
	case map[string]any:
		for name, x := range v {
			n += len(name)>>6 + weight(x)
		}
	}
	return n
}

// ahead is the work of a visit before it is charged.
func ahead(s *jsonschema.Schema) int {
	if s == nil {
		return 0
	}
	n := 1
	if s.Const != nil {
		n += weight(*s.Const)
	}
	if s.Enum != nil {
		all := 0
		for _, v := range s.Enum.Values {
			all += weight(v)
		}
		n += all / 4
	}
	return n
}

// requires counts the required names that an object may lack for a schema object.
func requires(s *jsonschema.Schema) int {
	n := len(s.Required)
	for _, names := range s.DependentRequired {
		n += len(names)
	}
	for _, of := range s.Dependencies {
		if names, ok := of.([]string); ok {
			n += len(names)
		}
	}
	return n
}
