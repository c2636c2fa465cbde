package schemas

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"sync"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// MaxForeignWork bounds one validation with a foreign schema, in visits of a
// schema object or their like: a few $ref can double the work at each level of
// a small document. A megabyte of ordinary data takes about 100,000.
const MaxForeignWork = 1 << 21

// errSpent ends a validation that does too much, by panic: the validator has
// no other way out. budget.validate recovers it.
var errSpent = errors.New("schemas: validation takes too much work")

// budget counts the work of one validation at a time.
type budget struct {
	patterns *patterns
	enum     int // values of the schema's longest enum

	mu   sync.Mutex // held during a validation, guards left
	left int
}

// validate runs one validation within the budget.
func (b *budget) validate(s *Schema, value any) (found []Violation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = MaxForeignWork
	defer func() {
		if recover() != nil {
			found = []Violation{{Reason: "takes too much work to check"}}
		}
	}()
	return s.violations(s.compiled.Validate(value))
}

// vocabulary has no keyword. It lays a charge on every schema object as it is
// compiled: a format, because the validator asks that before it goes deeper.
func (b *budget) vocabulary() *jsonschema.Vocabulary {
	yes := true
	return &jsonschema.Vocabulary{
		URL:    "urn:writ:budget",
		Schema: &jsonschema.Schema{Bool: &yes},
		Compile: func(ctx *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
			s := ctx.Enqueue(nil)
			s.Format = b.charge(s, s.Format)
			return nil, nil
		},
	}
}

// charge wraps the format of a schema object, if any.
func (b *budget) charge(s *jsonschema.Schema, asserted *jsonschema.Format) *jsonschema.Format {
	out := &jsonschema.Format{Name: "unsaid"}
	if asserted != nil {
		out.Name = asserted.Name
	}
	out.Validate = func(v any) error {
		if b.left -= b.cost(s, v); b.left < 0 {
			panic(errSpent)
		}
		if asserted == nil {
			return nil
		}
		return asserted.Validate(v)
	}
	return out
}

// cost of visiting a value. A container pays in advance for the enum that each
// child may be compared with, since a child that matches none pays nothing.
func (b *budget) cost(s *jsonschema.Schema, v any) int {
	switch v := v.(type) {
	case map[string]any:
		names := 0
		for name := range v {
			names += len(name)
		}
		instructions := 0
		for re := range s.PatternProperties {
			instructions += b.patterns.size(re)
		}
		return 1 + len(v)*(1+b.enum/4) + names*instructions>>8
	case []any:
		return 1 + len(v)*(1+b.enum/4)
	case string:
		instructions := 0
		if s.Pattern != nil {
			instructions = b.patterns.size(s.Pattern)
		}
		return 1 + len(v)>>8 + len(v)*instructions>>8
	}
	return 1
}

// Bounds of the patterns of a foreign schema. Matching takes time in proportion
// to the text times the compiled program, and a{1000} is a thousand instructions.
const (
	maxPattern      = 1 << 10 // bytes of one
	maxInstructions = 1 << 14 // of all together
)

// patterns is the regular expression engine of one schema.
type patterns struct {
	sizes  map[string]int // pattern to instructions; written while compiling only
	total  int
	sealed atomic.Bool
}

func newPatterns() *patterns { return &patterns{sizes: map[string]int{}} }

func (p *patterns) size(re jsonschema.Regexp) int { return p.sizes[re.String()] }

// compile is asked by the metaschema, by the compiler, and once sealed by
// instances that old drafts want to be in format regex.
func (p *patterns) compile(pattern string) (jsonschema.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errors.New("pattern is too long")
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, errors.New("pattern is not a regular expression (RE2)")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, errors.New("pattern cannot be compiled")
	}
	if !p.sealed.Load() {
		if _, ok := p.sizes[pattern]; !ok {
			p.sizes[pattern] = len(program.Inst)
			p.total += len(program.Inst)
		}
	}
	if p.total > maxInstructions || len(program.Inst) > maxInstructions {
		return nil, errors.New("patterns are too large")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return re, nil
}
