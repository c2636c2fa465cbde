package policies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// NameKind is the kind of thing that a name in a policy refers to.
type NameKind string

// Kinds of names.
const (
	NameType   NameKind = "type"
	NameSkill  NameKind = "skill"
	NameRole   NameKind = "role"
	NameTenant NameKind = "tenant"
)

// named are the paths of the input whose values are names; "*" is any element.
var named = map[string]NameKind{
	"/intent/type": NameType, "/actor/roles/*": NameRole, "/actor/tenant": NameTenant,
	"/intent/args/skill": NameSkill, "/intent/args/skills/*": NameSkill, "/skill/name": NameSkill, "/task/skills/*": NameSkill,
}

// Name is a constant that a policy compares with a name of the input.
type Name struct {
	Kind NameKind
	Name string
	File string
	Line int
}

// Where returns its file and line.
func (n Name) Where() string { return fmt.Sprintf("policy %s:%d", n.File, n.Line) }

// Names lists the constants that the tree compares with names of the input, each once, in order:
// by ==, != and in, and as lookups in a constant set, array or object. Values computed during
// evaluation, and patterns, are left out.
func (e *Engine) Names() []Name {
	found := map[Name]bool{}
	for _, m := range e.compiler.Modules {
		for _, rule := range m.Rules {
			(&ruleNames{e.tree, map[ast.Var]ast.Value{}, found}).walk(rule)
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b Name) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}

// ruleNames finds the names in a compiled rule.
type ruleNames struct {
	tree  *tree
	local map[ast.Var]ast.Value // what a variable of the compiler stands for
	found map[Name]bool
}

func (r *ruleNames) walk(rule *ast.Rule) {
	ast.WalkExprs(rule, func(x *ast.Expr) bool {
		if every, ok := x.Terms.(*ast.Every); ok {
			r.bind(every.Value, ast.Ref{every.Domain, ast.VarTerm("_")})
		} else if x.IsEquality() {
			r.bind(x.Operand(0), x.Operand(1).Value)
			r.bind(x.Operand(1), x.Operand(0).Value)
		}
		return false
	})
	ast.WalkExprs(rule, func(x *ast.Expr) bool {
		r.compared(x)
		r.findLookups(x)
		return false
	})
}

func (r *ruleNames) compared(x *ast.Expr) {
	if !x.IsCall() || len(x.Operands()) < 2 {
		return
	}
	a, b := x.Operand(0).Value, x.Operand(1).Value
	switch x.Operator().String() {
	case ast.Equality.Name, ast.Equal.Name, ast.NotEqual.Name:
		r.compare(x.Location, a, b)
		r.compare(x.Location, b, a)
	case ast.Member.Name:
		r.compare(x.Location, a, ast.Ref{ast.NewTerm(b), ast.VarTerm("_")})
		r.compare(x.Location, ast.Ref{ast.NewTerm(b), ast.VarTerm("_")}, a)
	}
}

// findLookups finds bracket lookups in constants.
func (r *ruleNames) findLookups(x *ast.Expr) {
	ast.NewGenericVisitor(func(node any) bool {
		if inner, ok := node.(*ast.Expr); ok && inner != x {
			return true // visited separately, with its own line
		}
		ref, _ := node.(ast.Ref)
		for i := 1; i < len(ref); i++ {
			switch in := r.value(ref[:i]).(type) {
			case ast.Object:
				in.Foreach(func(key, _ *ast.Term) { r.compare(x.Location, ref[i].Value, key.Value) })
			case ast.Set:
				in.Foreach(func(key *ast.Term) { r.compare(x.Location, ref[i].Value, key.Value) })
			}
		}
		return false
	}).Walk(x)
}

// bind records the value of a variable, unless that is another variable.
func (r *ruleNames) bind(to *ast.Term, is ast.Value) {
	if v, ok := to.Value.(ast.Var); ok && v.IsGenerated() {
		if _, other := is.(ast.Var); !other && r.local[v] == nil {
			r.local[v] = is
		}
	}
}

// compare records what a value of the input is compared with, if that is a constant, or any
// element of one.
func (r *ruleNames) compare(at *ast.Location, of, with ast.Value) {
	kind, ok := named[r.path(of)]
	if !ok || at == nil {
		return
	}
	note := func(t *ast.Term) {
		if name, ok := t.Value.(ast.String); ok && name != "" {
			r.found[Name{kind, string(name), at.File, at.Row}] = true
		}
	}
	with = r.value(with)
	ref, ok := with.(ast.Ref)
	if !ok || len(ref) < 2 || ref[len(ref)-1].IsGround() {
		note(ast.NewTerm(with))
		return
	}
	switch elements := r.value(ref[:len(ref)-1]).(type) {
	case ast.Set:
		elements.Foreach(note)
	case *ast.Array:
		elements.Foreach(note)
	case ast.Object:
		elements.Foreach(func(_, value *ast.Term) { note(value) })
	}
}

// path is the path of the input that a value refers to, "" for others.
func (r *ruleNames) path(of ast.Value) (path string) {
	ref, ok := r.value(of).(ast.Ref)
	if !ok || !ref.HasPrefix(ast.InputRootRef) {
		return ""
	}
	for _, term := range ref[1:] {
		if name, ok := term.Value.(ast.String); ok {
			path += "/" + string(name)
		} else {
			path += "/*"
		}
	}
	return path
}

// maxSteps bounds chains of variables.
const maxSteps = 16

// value resolves a value: variables at its beginning and references to constants are replaced.
func (r *ruleNames) value(of ast.Value) ast.Value {
	for range maxSteps {
		switch v := of.(type) {
		case ast.Var:
			if r.local[v] == nil {
				return of
			}
			of = r.local[v]
		case ast.Ref:
			head := r.value(v[0].Value)
			if ref, ok := head.(ast.Ref); ok {
				of = ref.Concat(v[1:])
			} else if len(v) == 1 {
				return head
			} else if !v.HasPrefix(ast.InputRootRef) && !v.HasPrefix(ast.DefaultRootRef) {
				return append(ast.Ref{ast.NewTerm(head)}, v[1:]...)
			} else {
				return cmp.Or(r.constant(v), ast.Value(v))
			}
		default:
			return of
		}
	}
	return of
}

// constant is the value of a rule that has no condition, or of a data file; nil of others.
func (r *ruleNames) constant(ref ast.Ref) ast.Value {
	if !ref.HasPrefix(ast.DefaultRootRef) || !ref.IsGround() {
		return nil
	}
	if rules := r.tree.compiler.GetRulesExact(ref); len(rules) > 0 {
		return ruleValue(rules)
	}
	var at any = r.tree.static
	for _, term := range ref[1:] {
		name, _ := term.Value.(ast.String)
		object, _ := at.(map[string]any)
		at = object[string(name)]
	}
	v, err := ast.InterfaceToValue(at)
	if at == nil || err != nil {
		return nil
	}
	return v
}

// ruleValue is the value of rules without conditions.
func ruleValue(rules []*ast.Rule) ast.Value {
	members := ast.NewSet()
	for _, rule := range rules {
		always := ast.NewBody(ast.NewExpr(ast.BooleanTerm(true)))
		switch {
		case !rule.Body.Equal(always) || rule.Else != nil || len(rule.Head.Args) > 0:
			return nil
		case rule.Head.Key != nil && rule.Head.Value == nil:
			members.Add(rule.Head.Key)
		case len(rules) == 1:
			return rule.Head.Value.Value
		default:
			return nil
		}
	}
	return members
}
