package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"aob.dev/writ/intents"
)

// Profile is the version of the subset of CEL for conditions, and of its bounds.
const Profile = 1

// Bounds of a condition.
const (
	maxRead  = 4096      // bytes of each value that it reads, as JSON
	maxCost  = 100_000   // in CEL's units
	maxCosts = 1_000_000 // same, for all conditions of a graph
	maxNest  = 32
)

// maxJudged is the number of runs whose results a condition remembers.
const maxJudged = 16

// functions of the profile: no time, no regular expressions, no dyn.
var functions = []string{
	operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
	operators.Index, operators.In,
	"size", "contains", "startsWith", "endsWith", "int", "double", "string",
}

// macros of the profile: each gives one value.
var macros = []string{operators.All, operators.Exists, operators.ExistsOne}

var profile = sync.OnceValues(func() (*cel.Env, error) {
	subset := &env.LibrarySubset{IncludeMacros: macros}
	for _, name := range functions {
		subset.IncludeFunctions = append(subset.IncludeFunctions, env.NewFunction(name))
	}
	return cel.NewCustomEnv(cel.StdLib(cel.StdLibSubset(subset)), cel.CrossTypeNumericComparisons(true),
		cel.ParserRecursionLimit(maxNest), cel.ParserExpressionSizeLimit(maxCondition))
})

// maxCondition is the maximum length of a condition, in bytes.
const maxCondition = 1024

// condition is a compiled condition. Each path that it reads is a variable of its own, so that
// templates and conditions read alike.
type condition struct {
	program cel.Program
	paths   []path // by number of the variable
	cost    uint64 // maximum of an evaluation

	mu   sync.Mutex        // guards runs
	runs []conditionResult // of the last maxJudged runs, the newest last
}

// conditionResult is the result of a condition for values. It depends on them alone, and those
// of a run are immutable: so a run evaluates each of its conditions once, however often its next
// nodes are requested, and whatever other runs of the graph do.
type conditionResult struct {
	run   string
	saw   string
	holds bool
	err   error
}

// compile compiles a condition. types returns the types of paths; wrong is for people.
func compile(text string, types func(path) *cel.Type) (c *condition, wrong string) {
	base, err := profile()
	if err != nil {
		return nil, err.Error()
	}
	if inner, ok := strings.CutPrefix(text, "${"); ok && strings.HasSuffix(inner, "}") {
		text = strings.TrimSuffix(inner, "}")
	}
	parsed, issues := base.Parse(text)
	if issues.Err() != nil {
		return nil, issueText(issues)
	}
	c = &condition{}
	if wrong := c.name(parsed.NativeRep().Expr()); wrong != "" {
		return nil, wrong
	}
	var variables []cel.EnvOption
	for i, p := range c.paths {
		variables = append(variables, cel.Variable(variable(i), types(p)))
	}
	extended, err := base.Extend(variables...)
	if err != nil {
		return nil, err.Error()
	}
	checked, issues := extended.Check(parsed)
	if issues.Err() != nil {
		return nil, issueText(issues)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) {
		return nil, fmt.Sprintf("has the type %s: compare it, as in … == true", t)
	}
	most, err := extended.EstimateCost(checked, sizes{})
	if err != nil {
		return nil, err.Error()
	}
	if most.Max > maxCost {
		return nil, fmt.Sprintf("may cost %d, more than %d: use fewer loops, one inside the other", most.Max, maxCost)
	}
	c.cost = most.Max
	if c.program, err = extended.Program(checked, cel.CostLimit(maxCost)); err != nil {
		return nil, err.Error()
	}
	return c, ""
}

// variable is a name that no condition can spell.
func variable(i int) string { return fmt.Sprintf("@%d", i) }

// issueText is the first issue that CEL reports.
func issueText(issues *cel.Issues) string {
	for _, e := range issues.Errors() {
		return "is no condition: " + strings.Join(strings.Fields(e.Message), " ")
	}
	return "is no condition"
}

// name replaces all paths below an expression with variables.
func (c *condition) name(e ast.Expr) (wrong string) {
	if tokens := chain(e); tokens != nil {
		p, wrong := pathOf(tokens)
		if wrong != "" {
			return wrong
		}
		i := slices.IndexFunc(c.paths, func(x path) bool { return x.pointer() == p.pointer() })
		if i < 0 {
			i = len(c.paths)
			c.paths = append(c.paths, p)
		}
		e.SetKindCase(ast.NewExprFactory().NewIdent(e.ID(), variable(i)))
		return ""
	}
	var below []ast.Expr
	switch e.Kind() { //nolint:exhaustive // the others have nothing below
	case ast.IdentKind:
		if e.AsIdent() == rootInputs || e.AsIdent() == rootNodes {
			_, wrong = pathOf(nil)
		}
		return wrong
	case ast.SelectKind:
		below = []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		below = e.AsCall().Args()
		if e.AsCall().IsMemberFunction() {
			below = append([]ast.Expr{e.AsCall().Target()}, below...)
		}
	case ast.ListKind:
		below = e.AsList().Elements()
	case ast.MapKind, ast.StructKind:
		return "has braces, which conditions do not"
	case ast.ComprehensionKind:
		l := e.AsComprehension()
		if slices.Contains([]string{rootRun, rootInputs, rootNodes}, l.IterVar()) {
			return "has a loop over " + l.IterVar() + ": choose another name, such as x"
		}
		below = []ast.Expr{l.IterRange(), l.AccuInit(), l.LoopCondition(), l.LoopStep(), l.Result()}
	}
	for _, b := range below {
		if wrong := c.name(b); wrong != "" {
			return wrong
		}
	}
	return ""
}

// chain returns the tokens of an expression that only selects members, beginning with a root;
// nil for others.
func chain(e ast.Expr) []any {
	var before ast.Expr
	var token string
	switch e.Kind() {
	case ast.IdentKind:
		if e.AsIdent() == rootRun {
			return []any{rootRun}
		}
		return nil
	case ast.SelectKind:
		before, token = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
			return nil
		}
		s, ok := call.Args()[1].AsLiteral().(types.String)
		if !ok {
			return nil
		}
		before, token = call.Args()[0], string(s)
	default:
		return nil
	}
	if before.Kind() == ast.IdentKind && (before.AsIdent() == rootInputs || before.AsIdent() == rootNodes) {
		return []any{before.AsIdent(), token}
	}
	if tokens := chain(before); tokens != nil {
		return append(tokens, token)
	}
	return nil
}

// sizes are the bounds of a condition's inputs.
type sizes struct{}

func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	if len(n.Path()) == 0 {
		return nil
	}
	return &cost.SizeEstimate{Min: 0, Max: maxRead}
}

func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// holds evaluates the condition. A missing input is an error, unless the rest decides: true ||
// x, false && x. saw is the digest of its inputs; empty if unknown.
func (c *condition) holds(r *reading, saw string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.runs, func(j conditionResult) bool { return j.run == r.RunID })
	if i >= 0 && saw != "" && c.runs[i].saw == saw {
		return c.runs[i].holds, c.runs[i].err
	}
	holds, err := c.eval(r)
	switch {
	case i >= 0:
		c.runs = slices.Delete(c.runs, i, i+1)
	case len(c.runs) == maxJudged:
		c.runs = slices.Delete(c.runs, 0, 1)
	}
	c.runs = append(c.runs, conditionResult{r.RunID, saw, holds, err})
	return holds, err
}

func (c *condition) eval(r *reading) (bool, error) {
	a := &activation{reading: r, condition: c}
	out, _, err := c.program.Eval(a)
	if err != nil {
		if a.missing != "" {
			return false, &Fault{Pointer: a.missing, Reason: "is not there, is hidden, or is longer than a condition may read"}
		}
		return false, &Fault{Reason: err.Error()}
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, &Fault{Reason: "the condition is neither true nor false"}
	}
	return holds, nil
}

// saw is the digest of the values that the condition reads, by pointer; missing ones are left
// out.
func (c *condition) saw(r *reading) string {
	values := map[string]any{}
	for _, p := range c.paths {
		if v, ok := r.at(p); ok {
			values[p.pointer()] = v
		}
	}
	text, err := canonical(values)
	if err != nil {
		return "" // all values of a record are within I-JSON
	}
	return intents.Digest(text)
}

// activation gives a condition its values.
type activation struct {
	*reading
	condition *condition
	missing   string // pointer of the first missing value
}

func (a *activation) Parent() interpreter.Activation { return nil }

func (a *activation) ResolveName(name string) (any, bool) {
	for i, p := range a.condition.paths {
		if name != variable(i) {
			continue
		}
		v, ok := a.at(p)
		if ok && p.root == rootInputs { // outputs are cut
			text, err := intents.MarshalPlain(v)
			ok = err == nil && len(text) <= maxRead
		}
		if ok {
			return eachLeaf(v, native), true
		}
		if a.missing == "" {
			a.missing = p.pointer()
		}
	}
	return nil, false
}

// native converts a leaf of a decoded value for CEL: a whole number is an int.
func native(leaf any) any {
	n, is := leaf.(json.Number)
	if !is {
		return leaf
	}
	if whole, err := n.Int64(); err == nil {
		return whole
	}
	f, err := n.Float64()
	if err != nil {
		return nil
	}
	return f
}
