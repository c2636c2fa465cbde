package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ReadSet is everything of the input that a policy can read. A decision depends
// on nothing else of the input, so it may be remembered under the values at
// these paths (DESIGN §7).
//
// A path is made of member names, and of [each] for every element of an array
// or member of an object. It reaches as far as its names are known before
// evaluation: input.task.skills[_] reads all of task.skills.
type ReadSet struct {
	// Paths that orders of every type are judged by, sorted, shortest only.
	Paths [][]string
	// ByType has the further paths of orders of one type: what only rules read
	// that have asked for input.intent.type before.
	ByType map[string][][]string
	// All says that the policy may read any member, so that nothing is remembered.
	All bool
}

// each stands in a path for all elements.
const each = "[_]"

// typePath is the path that tells which other paths count.
var typePath = []string{"intent", "type"}

// String lists the paths, such as "input.intent.type", those of some types with
// the types.
func (r *ReadSet) String() string {
	if r.All {
		return "input"
	}
	lines := make([]string, 0, len(r.Paths))
	for _, p := range r.Paths {
		lines = append(lines, written(p))
	}
	types := map[string][]string{}
	for _, typ := range slices.Sorted(maps.Keys(r.ByType)) {
		for _, p := range r.ByType[typ] {
			types[written(p)] = append(types[written(p)], typ)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(types)) {
		lines = append(lines, fmt.Sprintf("%s (of %s)", p, strings.Join(types[p], ", ")))
	}
	return strings.Join(lines, "\n")
}

func written(path []string) string {
	return strings.ReplaceAll("input."+strings.Join(path, "."), "."+each, each)
}

// Volatile lists the paths whose values hardly ever repeat: a policy that reads
// one is asked again for nearly every order that it counts for.
func (r *ReadSet) Volatile() []string {
	found := map[string]bool{}
	for _, paths := range append(slices.Collect(maps.Values(r.ByType)), r.Paths) {
		for _, p := range paths {
			switch path := strings.Join(p, "."); path {
			case "now", "signer.kid", "constraints", "constraints.issued_at", "constraints.idempotency_key",
				"context", "context.session_id", "context.turn_id", "context.plan_id", "context.task_id", "context.cause",
				"task", "task.task_id", "task.plan_id", "task.deadline", "plan", "plan.plan_id", "intent", "intent.args":
				found["input."+path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// add a path that counts for some types; nil: for all.
func (r *ReadSet) add(path []string, types []string) {
	switch {
	case len(path) == 0:
		r.All = true
	case types == nil:
		r.Paths = append(r.Paths, path)
	default:
		if r.ByType == nil {
			r.ByType = map[string][][]string{}
		}
		for _, typ := range types {
			r.ByType[typ] = append(r.ByType[typ], path)
		}
	}
}

// reduce sorts and drops what a shorter path covers.
func (r *ReadSet) reduce() {
	if r.All {
		r.Paths, r.ByType = nil, nil
		return
	}
	if len(r.ByType) > 0 {
		r.Paths = append(r.Paths, typePath)
	}
	r.Paths = shortest(r.Paths)
	for typ, paths := range r.ByType {
		paths = slices.DeleteFunc(shortest(paths), func(p []string) bool {
			return slices.ContainsFunc(r.Paths, func(q []string) bool { return covers(q, p) })
		})
		if r.ByType[typ] = paths; len(paths) == 0 {
			delete(r.ByType, typ)
		}
	}
	if len(r.ByType) == 0 {
		r.ByType = nil
	}
}

func shortest(paths [][]string) [][]string {
	slices.SortFunc(paths, slices.Compare[[]string])
	kept := paths[:0]
	for _, p := range paths {
		if n := len(kept); n > 0 && covers(kept[n-1], p) {
			continue
		}
		kept = append(kept, p)
	}
	return slices.Clip(kept)
}

func covers(short, long []string) bool {
	return len(short) <= len(long) && slices.Equal(short, long[:len(short)])
}
