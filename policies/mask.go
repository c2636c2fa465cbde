package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maskQuery is where OPA's own decision logs look for masks too. A tree without
// the package masks nothing.
const maskQuery = "data.system.log.mask"

// maskRule is one element of data.system.log.mask: a path below /input or
// /result that is taken out, or, by upsert, given another value. A string alone
// takes out.
type maskRule struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// decodeMasks reads the set or array that the policy gives.
func decodeMasks(term *ast.Term) ([]maskRule, error) {
	v, err := ast.JSON(term.Value)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("mask is neither set nor array")
	}
	rules := make([]maskRule, 0, len(list))
	for _, x := range list {
		if path, ok := x.(string); ok {
			rules = append(rules, maskRule{Op: "remove", Path: path})
			continue
		}
		raw, err := json.Marshal(x)
		if err != nil {
			return nil, err
		}
		var r maskRule
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	for _, r := range rules {
		if r.Op != "remove" && r.Op != "upsert" {
			return nil, fmt.Errorf("mask operation %q is neither remove nor upsert", r.Op)
		}
		if _, err := r.steps(); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// steps of the path, unescaped; the first is input or result.
func (r maskRule) steps() ([]string, error) {
	rest, ok := strings.CutPrefix(r.Path, "/")
	steps := strings.Split(rest, "/")
	if !ok || steps[0] != "input" && steps[0] != "result" {
		return nil, fmt.Errorf("mask path %q begins with neither /input nor /result", r.Path)
	}
	for i, s := range steps {
		var err error
		if steps[i], err = url.PathUnescape(s); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// apply masks an event. A path that leads to nothing is skipped: it is listed
// neither as erased nor as masked.
func (r maskRule) apply(e *Event) error {
	steps, err := r.steps()
	if err != nil {
		return err
	}
	root := map[string]any{"input": e.Input, "result": e.Result}
	if r.Op == "upsert" {
		if upsert(root, steps, r.Value) {
			e.Masked = append(e.Masked, r.Path)
		}
	} else if _, done := remove(root, steps); done {
		e.Erased = append(e.Erased, r.Path)
	}
	e.Input, e.Result = root["input"], root["result"]
	return nil
}

// remove takes out what stands at the path and gives what is left of node.
func remove(node any, steps []string) (left any, done bool) {
	switch v := node.(type) {
	case map[string]any:
		child, there := v[steps[0]]
		if !there {
			return node, false
		}
		if len(steps) == 1 {
			delete(v, steps[0])
			return v, true
		}
		v[steps[0]], done = remove(child, steps[1:])
		return v, done
	case []any:
		i, err := strconv.Atoi(steps[0])
		if err != nil || i < 0 || i >= len(v) {
			return node, false
		}
		if len(steps) == 1 {
			return slices.Delete(v, i, i+1), true
		}
		v[i], done = remove(v[i], steps[1:])
		return v, done
	default:
		return node, false
	}
}

// upsert puts a value at the path, and the objects that lead there.
func upsert(node any, steps []string, value any) bool {
	last := len(steps) == 1
	switch v := node.(type) {
	case map[string]any:
		if last {
			v[steps[0]] = value
			return true
		}
		if v[steps[0]] == nil {
			v[steps[0]] = map[string]any{}
		}
		return upsert(v[steps[0]], steps[1:], value)
	case []any:
		i, err := strconv.Atoi(steps[0])
		if err != nil || i < 0 || i >= len(v) {
			return false
		}
		if last {
			v[i] = value
			return true
		}
		return upsert(v[i], steps[1:], value)
	default:
		return false
	}
}
