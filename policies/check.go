package policies

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Report is the result of Check for a tree that compiles.
type Report struct {
	Digest   string     `json:"digest"`
	Rules    []RuleInfo `json:"rules"`    // deny and hold, by id
	Reads    []string   `json:"reads"`    // paths of the input that decide
	Volatile []string   `json:"volatile"` // those of Reads whose values hardly ever repeat
}

// Check compiles a tree and its tests as strictly as New does, and reports what it reads. The
// error lists all faults, one a line.
func Check(s Source) (Report, error) {
	e, err := New(s)
	if err != nil {
		return Report{}, explained(err)
	}
	modules, err := parse(s)
	if err == nil {
		_, err = compile(modules)
	}
	if err != nil {
		return Report{}, explained(err)
	}
	reads := e.ReadSet()
	return Report{
		Digest: e.Digest(), Rules: e.Rules(), Reads: strings.Split(reads.String(), "\n"), Volatile: append([]string{}, reads.Volatile()...),
	}, nil
}

// Rules that deny or hold, by id.
func (e *Engine) Rules() []RuleInfo {
	return slices.SortedFunc(maps.Values(e.rules), func(a, b RuleInfo) int { return cmp.Compare(a.ID, b.ID) })
}

// explained adds the reason to the compiler's error about an OPA built-in that a policy may not
// call.
func explained(err error) error {
	var all ast.Errors
	if !errors.As(err, &all) {
		return err
	}
	allowed := map[string]bool{}
	for _, b := range Capabilities().Builtins {
		allowed[b.Name] = true
	}
	lines := make([]error, 0, len(all))
	for _, one := range all {
		name, unknown := strings.CutPrefix(one.Message, "undefined function ")
		if unknown && !allowed[name] && ast.BuiltinMap[name] != nil {
			lines = append(lines, fmt.Errorf("%w: forbidden, since it reaches outside or depends on clock or chance", one))
			continue
		}
		lines = append(lines, one)
	}
	return errors.Join(lines...)
}
