package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// ReadSet is everything of the input that a tree can read: each reference `input…` anywhere in
// its compiled modules, as far as its names are constants. An evaluation can see nothing else of
// the input, so it is a function of the values at these paths, and may be remembered under them.
// Which rule reads a path, and for intents of which type, does not matter: a path that an intent
// does not have is undefined, and that is a value like any other.
type ReadSet struct {
	// Paths of member names, sorted, shortest only.
	Paths [][]string
	// All: the tree may read any member, so nothing is remembered.
	All bool
}

// readSet of compiled modules, in which imports and local names for the input are resolved.
func readSet(modules map[string]*ast.Module, queries ...ast.Body) *ReadSet {
	r := &ReadSet{}
	for _, m := range modules {
		for _, rule := range m.Rules {
			r.walk(rule)
		}
	}
	for _, q := range queries {
		r.walk(q)
	}
	if r.Paths = shortest(r.Paths); r.All {
		r.Paths = nil
	}
	return r
}

func (r *ReadSet) walk(node any) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Head:
			r.walk(x.Reference) // the visitor skips it
		case ast.Ref:
			if x.HasPrefix(ast.InputRootRef) {
				r.add(x[1:])
				for _, term := range x[1:] {
					r.walk(term) // expressions in brackets may read, too
				}
				return true
			}
		case ast.Var: // not at the head of a reference: the whole input is used
			r.All = r.All || x.Equal(ast.InputRootDocument.Value)
		}
		return false
	}).Walk(node)
}

// add the constant names at the beginning of a reference.
func (r *ReadSet) add(ref ast.Ref) {
	var path []string
	for _, term := range ref {
		name, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(name))
	}
	r.All = r.All || len(path) == 0
	r.Paths = append(r.Paths, path)
}

// shortest sorts paths and drops those below another path.
func shortest(paths [][]string) (kept [][]string) {
	slices.SortFunc(paths, slices.Compare[[]string])
	for _, p := range paths {
		if last := len(kept) - 1; last < 0 || len(kept[last]) > len(p) || !slices.Equal(kept[last], p[:len(kept[last])]) {
			kept = append(kept, p)
		}
	}
	return kept
}

// String lists the paths, such as "input.intent.type".
func (r *ReadSet) String() string {
	if r.All {
		return "input"
	}
	lines := make([]string, 0, len(r.Paths))
	for _, p := range r.Paths {
		lines = append(lines, "input."+strings.Join(p, "."))
	}
	return strings.Join(lines, "\n")
}

// Volatile lists the paths whose values hardly ever repeat: a policy that reads one is evaluated
// for nearly every intent.
func (r *ReadSet) Volatile() []string {
	var found []string
	for _, p := range r.Paths {
		switch path := strings.Join(p, "."); path {
		case "now", "signer.kid", "constraints", "constraints.issued_at", "constraints.idempotency_key",
			"context", "context.session_id", "context.turn_id", "context.plan_id", "context.task_id", "context.cause",
			"task", "task.task_id", "task.plan_id", "task.deadline", "plan", "plan.plan_id", "intent", "intent.args":
			found = append(found, "input."+path)
		}
	}
	return found
}
