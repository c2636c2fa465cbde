package policies

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reader finds out what a compiled tree can read of the input, rule by rule from
// the entry points. It errs on the side of more: a reference whose names are not
// constants counts as a read of all below its constant part, and a reference
// into data as one of every rule that may stand there.
type reader struct {
	set   *ReadSet
	rules []*ast.Rule
	paths [][]string // of rules, as far as their names are constant
	// done has the types for which a rule was read; one entry nil: for all.
	done map[*ast.Rule]map[string]bool
	// replaced: some `with` puts other values in the place of input or data, so
	// that what a rule asked for is not what another rule finds.
	replaced bool
}

// readSet reads from the entry points of the engine.
func readSet(modules map[string]*ast.Module, entries ...ast.Body) *ReadSet {
	r := &reader{set: &ReadSet{}, done: map[*ast.Rule]map[string]bool{}}
	for _, m := range modules {
		ast.WalkRules(m, func(rule *ast.Rule) bool {
			r.rules = append(r.rules, rule)
			r.paths = append(r.paths, constants(rule.Ref()[1:]))
			return false
		})
		ast.WalkExprs(m, func(x *ast.Expr) bool {
			r.replaced = r.replaced || len(x.With) > 0
			return false
		})
	}
	for _, body := range entries {
		r.body(body, nil)
	}
	r.set.reduce()
	return r.set
}

// body reads expressions in the order in which they are evaluated. What stands
// behind a question for the type is read for those types alone.
func (r *reader) body(body ast.Body, types []string) []string {
	var same []ast.Var // that are equal to the type from here on
	for _, x := range body {
		if v, ok := r.equals(x); ok {
			same = append(same, v)
			r.set.add(typePath, nil)
			continue
		}
		if asked := r.asked(x, same); asked != nil {
			r.set.add(typePath, nil)
			types = narrow(types, asked)
			continue
		}
		r.visit(x, types)
	}
	return types
}

// narrow is what is left of types (nil: all) among others.
func narrow(types, others []string) []string {
	if types == nil {
		return others
	}
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return !slices.Contains(others, t) })
}

// equals says that an expression lets through only where a variable equals the
// type: the compiler makes such.
func (r *reader) equals(x *ast.Expr) (ast.Var, bool) {
	if x.Negated || !x.IsEquality() {
		return "", false
	}
	a, b := x.Operand(0), x.Operand(1)
	if isType(a, nil) {
		a, b = b, a
	}
	v, ok := a.Value.(ast.Var)
	return v, ok && isType(b, nil)
}

// asked are the types that an expression lets through; nil: it is no question
// for the type, which the variables in same are too.
func (r *reader) asked(x *ast.Expr, same []ast.Var) []string {
	if r.replaced || x.Negated || !x.IsCall() || len(x.Operands()) != 2 {
		return nil
	}
	a, b := x.Operand(0), x.Operand(1)
	switch x.Operator().String() {
	case ast.Equality.Name, ast.Equal.Name:
		if isType(b, same) {
			a, b = b, a
		}
		if s, ok := b.Value.(ast.String); ok && isType(a, same) {
			return []string{string(s)}
		}
	case ast.Member.Name:
		if isType(a, same) {
			return texts(b)
		}
	}
	return nil
}

func isType(t *ast.Term, same []ast.Var) bool {
	if v, ok := t.Value.(ast.Var); ok {
		return slices.Contains(same, v)
	}
	ref, ok := t.Value.(ast.Ref)
	return ok && ref.HasPrefix(ast.InputRootRef) && slices.Equal(constants(ref[1:]), typePath) && len(ref) == 3
}

// texts of a constant set or array; nil if it holds anything else.
func texts(t *ast.Term) []string {
	var out []string
	all := true
	each := func(x *ast.Term) {
		s, ok := x.Value.(ast.String)
		out, all = append(out, string(s)), all && ok
	}
	switch v := t.Value.(type) {
	case ast.Set:
		v.Foreach(each)
	case *ast.Array:
		v.Foreach(each)
	default:
		all = false
	}
	if !all {
		return nil
	}
	return out
}

// visit reads a node, bodies within it included.
func (r *reader) visit(node any, types []string) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			r.ref(x, types)
			return true
		case ast.Var:
			switch {
			case x.Equal(ast.InputRootDocument.Value):
				r.set.All = true
			case x.Equal(ast.DefaultRootDocument.Value):
				r.under(nil, types)
			}
		}
		return false
	}).Walk(node)
}

func (r *reader) ref(ref ast.Ref, types []string) {
	switch {
	case ref.HasPrefix(ast.InputRootRef):
		r.set.add(pattern(ref[1:]), types)
	case ref.HasPrefix(ast.DefaultRootRef):
		r.under(constants(ref[1:]), types)
	default:
		r.visit(ref[0], types)
	}
	for _, term := range ref[1:] {
		r.visit(term, types) // what stands in brackets may read too
	}
}

// under reads the rules that may stand at or below a path, or above it.
func (r *reader) under(path []string, types []string) {
	for i, rule := range r.rules {
		if covers(path, r.paths[i]) || covers(r.paths[i], path) {
			r.rule(rule, types)
		}
	}
}

func (r *reader) rule(rule *ast.Rule, types []string) {
	done := r.done[rule]
	if done == nil {
		done = map[string]bool{}
		r.done[rule] = done
	}
	key := types
	if types == nil {
		key = []string{""}
	}
	todo := slices.DeleteFunc(slices.Clone(key), func(t string) bool { return done[t] })
	if done[""] || len(todo) == 0 {
		return
	}
	for _, t := range todo {
		done[t] = true
	}
	if types != nil {
		types = todo
	}
	for at := rule; at != nil; at = at.Else {
		behind := r.body(at.Body, types)
		r.visit(at.Head, behind)
	}
}

// constants are the names at the beginning of a reference.
func constants(ref ast.Ref) []string {
	path := []string{}
	for _, term := range ref {
		name, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(name))
	}
	return path
}

// pattern is the path of a reference, with each where a name is not known, up to
// the last name that is.
func pattern(ref ast.Ref) []string {
	path, known := []string{}, 0
	for _, term := range ref {
		if name, ok := term.Value.(ast.String); ok && string(name) != each {
			path = append(path, string(name))
			known = len(path)
			continue
		}
		if known == 0 {
			return nil // any member of the input
		}
		path = append(path, each)
	}
	return path[:known]
}
