package policies

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// ReadSet is everything of the input that a policy can read: paths of member
// names, shortest only. A decision depends on nothing else of the input, so it
// may be remembered under the values at these paths (DESIGN §7).
type ReadSet struct {
	// Paths are sorted. A path reaches as far as its names are known before
	// evaluation: input.task.skills[_] reads all of task.skills.
	Paths [][]string
	// All says that the policy may read any member, so that nothing is remembered.
	All bool
}

// String lists the paths, such as "input.intent.type".
func (r *ReadSet) String() string {
	if r.All {
		return "input"
	}
	lines := make([]string, len(r.Paths))
	for i, p := range r.Paths {
		lines[i] = "input." + strings.Join(p, ".")
	}
	return strings.Join(lines, "\n")
}

// Volatile lists the paths whose values hardly ever repeat: a policy that reads
// one is asked again for nearly every order.
func (r *ReadSet) Volatile() []string {
	var out []string
	for _, p := range r.Paths {
		switch path := strings.Join(p, "."); path {
		case "now", "signer.kid", "constraints", "constraints.issued_at", "constraints.idempotency_key",
			"context", "context.session_id", "context.turn_id", "context.plan_id", "context.task_id", "context.cause",
			"task", "task.task_id", "task.plan_id", "task.deadline", "plan", "plan.plan_id", "intent", "intent.args":
			out = append(out, "input."+path)
		}
	}
	return out
}

// readSet walks compiled modules. It errs on the side of more: a reference
// whose names are not constants counts as a read of all below its constant part.
func readSet(modules map[string]*ast.Module) *ReadSet {
	r := &ReadSet{}
	visitor := ast.NewGenericVisitor(nil)
	visit := func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			if x.HasPrefix(ast.InputRootRef) {
				r.add(groundPrefix(x[1:]))
				for _, term := range x[1:] {
					visitor.Walk(term) // what stands in brackets may read too
				}
				return true
			}
		case ast.Var:
			if x.Equal(ast.InputRootDocument.Value) {
				r.All = true
			}
		}
		return false
	}
	visitor = ast.NewGenericVisitor(visit)
	for _, m := range modules {
		for _, rule := range m.Rules {
			visitor.Walk(rule)
		}
	}
	r.reduce()
	return r
}

func groundPrefix(ref ast.Ref) []string {
	var path []string
	for _, term := range ref {
		name, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(name))
	}
	return path
}

func (r *ReadSet) add(path []string) {
	if len(path) == 0 {
		r.All = true
		return
	}
	r.Paths = append(r.Paths, path)
}

// reduce sorts and drops what a shorter path covers.
func (r *ReadSet) reduce() {
	if r.All {
		r.Paths = nil
		return
	}
	slices.SortFunc(r.Paths, slices.Compare[[]string])
	kept := r.Paths[:0]
	for _, p := range r.Paths {
		if n := len(kept); n > 0 && len(kept[n-1]) <= len(p) && slices.Equal(kept[n-1], p[:len(kept[n-1])]) {
			continue
		}
		kept = append(kept, p)
	}
	r.Paths = kept
	slices.SortStableFunc(r.Paths, func(a, b []string) int { return cmp.Compare(strings.Join(a, "."), strings.Join(b, ".")) })
}
