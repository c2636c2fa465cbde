package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a schema that others wrote: manifests of skills, return_specs.
const (
	MaxForeignSize  = 256 << 10 // bytes
	MaxForeignDepth = 64        // nesting; the root is 1
	MaxForeignNodes = 4096      // objects and arrays: the compiler is quadratic in them
	MaxForeignRegex = 8 << 10   // bytes of all patterns together: a compiled one can be 10,000 times as large
	MaxForeignWork  = 1 << 20   // visits of one validation: a few $ref can double the work at each level
)

// Compile compiles a schema that somebody else wrote. It fetches nothing: a
// $ref must stay within the document. Formats are annotations, as 2020-12 says.
// It never panics, and neither does validating with the result, which ends
// after a bounded number of steps. Results are cached; safe for concurrent use.
func Compile(source []byte) (*Schema, error) {
	if len(source) > MaxForeignSize {
		return nil, fmt.Errorf("schema has more than %d bytes", MaxForeignSize)
	}
	sum := sha256.Sum256(source)
	if s := foreign.get(sum); s != nil {
		return s, nil
	}
	s, err := compileForeign(slices.Clone(source), "sha256:"+hex.EncodeToString(sum[:]))
	if err != nil {
		return nil, err
	}
	foreign.put(sum, s)
	return s, nil
}

func compileForeign(source []byte, id string) (s *Schema, err error) {
	tree, err := decode(source)
	if err != nil {
		return nil, errors.New("schema is not JSON")
	}
	nodes := 0
	if err := bounded(tree, 1, &nodes); err != nil {
		return nil, err
	}
	defer func() { // the compiler panics on some documents that the metaschema allows
		if recover() != nil {
			s, err = nil, errors.New("schema cannot be compiled")
		}
	}()
	c, limits := newCompiler(), &regexLimits{}
	c.UseRegexpEngine(limits.compile)
	b := &budget{}
	c.RegisterVocabulary(b.vocabulary())
	c.AssertVocabs()
	const location = "urn:writ:foreign"
	if err := c.AddResource(location, tree); err != nil {
		return nil, fmt.Errorf("schema: %v", err)
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("schema: %v", err)
	}
	limits.sealed.Store(true)
	return &Schema{id: id, source: source, tree: tree, compiled: compiled, budget: b}, nil
}

// bounded refuses trees that are too deep or have too many nodes.
func bounded(v any, depth int, nodes *int) error {
	var children []any
	switch v := v.(type) {
	case []any:
		children = v
	case map[string]any:
		for _, x := range v {
			children = append(children, x)
		}
	default:
		return nil
	}
	if *nodes++; *nodes > MaxForeignNodes {
		return fmt.Errorf("schema has more than %d nodes", MaxForeignNodes)
	}
	if depth > MaxForeignDepth {
		return fmt.Errorf("schema is deeper than %d", MaxForeignDepth)
	}
	for _, x := range children {
		if err := bounded(x, depth+1, nodes); err != nil {
			return err
		}
	}
	return nil
}

// regexLimits compiles patterns within MaxForeignRegex. The engine also judges
// instances with format regex (asserted by old drafts): those are bounded singly.
type regexLimits struct {
	spent  int
	sealed atomic.Bool
}

func (l *regexLimits) compile(pattern string) (jsonschema.Regexp, error) {
	const single = 1 << 10
	if !l.sealed.Load() {
		l.spent += len(pattern)
	}
	if len(pattern) > single || l.spent > MaxForeignRegex {
		return nil, errors.New("patterns are too long")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return re, nil
}

// budget counts the work of one validation. It hangs in the compiled schema as
// a vocabulary whose only keyword is that there is none: the validator asks it
// at every visit.
type budget struct {
	mu   sync.Mutex // one validation at a time
	left int
}

// errSpent ends a validation that does too much, by panic: the validator has no other way out.
var errSpent = errors.New("schemas: validation takes too much work")

func (b *budget) vocabulary() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{
		URL:    "urn:writ:budget",
		Schema: anything(),
		Compile: func(_ *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
			v := visit{budget: b, cost: 1}
			if p, ok := obj["patternProperties"].(map[string]any); ok {
				v.perMember = len(p)
			}
			if e, ok := obj["enum"].([]any); ok {
				v.cost += len(e)
			}
			return v, nil
		},
	}
}

// anything accepts every schema: the vocabulary adds no keyword.
func anything() *jsonschema.Schema {
	yes := true
	return &jsonschema.Schema{Bool: &yes}
}

// visit is one schema object's charge.
type visit struct {
	budget          *budget
	cost, perMember int
}

// Validate implements jsonschema.SchemaExt; it runs under budget.mu.
func (v visit) Validate(_ *jsonschema.ValidatorContext, value any) {
	cost := v.cost
	switch value := value.(type) {
	case map[string]any:
		cost += v.perMember * len(value)
	case string:
		cost += len(value) >> 10
	}
	if v.budget.left -= cost; v.budget.left < 0 {
		panic(errSpent)
	}
}

// validate runs one validation within the budget.
func (b *budget) validate(s *Schema, value any) (found []Violation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = MaxForeignWork
	defer func() {
		if r := recover(); r != nil {
			found = []Violation{{Reason: "takes too much work to check"}}
		}
	}()
	return s.violations(s.compiled.Validate(value))
}

// cache keeps the newest foreign schemas.
type cache struct {
	mu    sync.Mutex
	byKey map[[32]byte]*Schema
	order [][32]byte // oldest first
}

// cached is how many foreign schemas are kept: a tenant's skills and the
// return_specs of the plans that run.
const cached = 512

var foreign = cache{byKey: map[[32]byte]*Schema{}}

func (c *cache) get(key [32]byte) *Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

func (c *cache) put(key [32]byte, s *Schema) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; ok {
		return
	}
	if len(c.order) == cached {
		delete(c.byKey, c.order[0])
		c.order = c.order[1:]
	}
	c.byKey[key] = s
	c.order = append(c.order, key)
}
