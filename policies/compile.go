package policies

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Capabilities are the built-ins that a policy may call: none that reaches the network, the
// clock, the environment or chance, so that a decision can be repeated from its record.
func Capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	kept := c.Builtins[:0]
	for _, b := range c.Builtins {
		if !b.IsNondeterministic() && !outside(b.Name) {
			kept = append(kept, b)
		}
	}
	c.Builtins = kept
	c.AllowNet = []string{} // schemas are not fetched either
	return c
}

// outside reports built-ins that are removed however OPA classifies them.
func outside(name string) bool {
	switch name {
	case "http.send", "opa.runtime", "rand.intn", "time.now_ns":
		return true
	}
	return strings.HasPrefix(name, "net.") || strings.HasPrefix(name, "uuid.")
}

// parse reads the modules of a tree: Rego v1 with METADATA.
func parse(s Source) (map[string]*ast.Module, error) {
	modules := make(map[string]*ast.Module)
	for _, name := range s.names() {
		if !isModule(name) {
			continue
		}
		m, err := parseModule(name, s[name])
		if err != nil {
			return nil, fmt.Errorf("policies: %w", err)
		}
		modules[name] = m
	}
	if len(modules) == 0 {
		return nil, errors.New("policies: no Rego module")
	}
	return modules, nil
}

// maxNesting bounds how deep the parser may go into one module, a few levels for each bracket:
// parsing deeper ones takes gigabytes.
const maxNesting = 1000

// parseModule reads one of them.
func parseModule(name string, content []byte) (*ast.Module, error) {
	_, _, errs := ast.NewParser().WithFilename(name).WithReader(bytes.NewReader(content)).WithRegoVersion(ast.RegoV1).
		WithCapabilities(Capabilities()).WithMaxRecursionDepth(maxNesting).Parse()
	if deep := slices.IndexFunc(errs, func(e *ast.Error) bool { return e.Message == ast.ErrMaxParsingRecursionDepthExceeded.Error() }); deep >= 0 {
		return nil, fmt.Errorf("%s: nested too deeply", errs[deep].Location)
	}
	return ast.ParseModuleWithOpts(name, string(content), ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1, Capabilities: Capabilities()})
}

func compile(modules map[string]*ast.Module) (*ast.Compiler, error) {
	c := ast.NewCompiler().WithStrict(true).WithCapabilities(Capabilities()).WithDefaultRegoVersion(ast.RegoV1)
	if c.Compile(modules); c.Failed() {
		return nil, fmt.Errorf("policies: %w", c.Errors)
	}
	return c, nil
}

// RuleInfo is the METADATA of a deny or hold rule.
type RuleInfo struct {
	ID          string `json:"id"` // custom.id
	Title       string `json:"title"`
	Description string `json:"description"`
	Hint        string `json:"hint,omitempty"` // custom.hint
	Package     string `json:"package"`
	File        string `json:"file"`
	Line        int    `json:"line"`
}

// describe collects the METADATA of every deny and hold rule by id. A rule without id, title or
// description is an error, and so is an id used in different packages; all errors are returned
// at once.
func describe(modules map[string]*ast.Module) (map[string]RuleInfo, error) {
	set, problems := ast.BuildAnnotationSet(slices.Collect(maps.Values(modules)))
	if len(problems) > 0 {
		return nil, fmt.Errorf("policies: %w", problems)
	}
	rules, errs := map[string]RuleInfo{}, []error(nil)
	for _, m := range modules {
		for _, rule := range m.Rules {
			if !refuses(m, rule) {
				continue
			}
			info := metadata(set, rule)
			info.Package = m.Package.Path.String()
			info.File, info.Line = rule.Location.File, rule.Location.Row
			if info.ID == "" || info.Title == "" || info.Description == "" {
				errs = append(errs, fmt.Errorf("%s:%d: rule %s needs METADATA with title, description and custom.id",
					info.File, info.Line, rule.Head.Ref()))
				continue
			}
			if other, taken := rules[info.ID]; taken && other.Package != info.Package {
				errs = append(errs, fmt.Errorf("%s:%d: id %q belongs to %s:%d", info.File, info.Line, info.ID, other.File, other.Line))
				continue
			}
			rules[info.ID] = info
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("policies: %w", err)
	}
	return rules, nil
}

// refuses reports whether a rule denies or holds intents. Defaults and aggregates in other
// packages do not.
func refuses(m *ast.Module, rule *ast.Rule) bool {
	pkg := m.Package.Path.String()
	if pkg != "data.writ.authz" && !strings.HasPrefix(pkg, "data.writ.ext.") {
		return false
	}
	name, ok := rule.Head.Ref()[0].Value.(ast.Var)
	return ok && (name == "deny" || name == "hold")
}

func metadata(set *ast.AnnotationSet, rule *ast.Rule) RuleInfo {
	var info RuleInfo
	for _, a := range set.GetRuleScope(rule) {
		info.Title, info.Description = a.Title, strings.TrimSpace(a.Description)
		info.ID, _ = a.Custom["id"].(string)
		info.Hint, _ = a.Custom["hint"].(string)
	}
	return info
}
