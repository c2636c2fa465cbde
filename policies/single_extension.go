package policies

import (
	"maps"
	"slices"
	"strings"
)

// aloneName is the name of an extension that is checked by itself.
const aloneName = "extension"

// alonePrefix is the path of its files in the tree that Single makes.
const alonePrefix = "ext/" + aloneName + "/"

// IsExtension reports whether a tree has no rules that could decide, so that it can only be one
// that tightens another.
func IsExtension(s Source) bool {
	for file, content := range s.Deciding() {
		m, err := parseModule(file, content)
		if err == nil && strings.HasSuffix(file, ".rego") && m.Package.Path.String() == "data.writ.authz" {
			return false
		}
	}
	return len(s) > 0
}

// Single is an extension on the embedded tree.
func Single(s Source) (Source, error) { return On(Embedded(), s) }

// On is an extension on a tree without the tree's own tests. It replaces the tree's modules of
// the same packages.
func On(base, s Source) (Source, error) {
	kept := base.Deciding()
	theirs, own := packagesOf(kept), map[string]bool{}
	for _, name := range packagesOf(s.Deciding()) {
		own[name] = true
	}
	maps.DeleteFunc(kept, func(file string, _ []byte) bool { return own[theirs[file]] })
	return Extend(kept, map[string]Source{aloneName: s})
}

// packagesOf returns the packages of a tree's modules, by file. Files that cannot be parsed are
// refused when they are compiled.
func packagesOf(s Source) map[string]string {
	out := map[string]string{}
	for file, content := range s {
		if !isModule(file) {
			continue
		}
		if m, err := parseModule(file, content); err == nil {
			out[file] = m.Package.Path.String()
		}
	}
	return out
}

// CheckAny is Check for a tree that decides, or for an extension by itself: the report then has
// only its rules, its digest, and its reads.
func CheckAny(s Source) (Report, error) {
	if !IsExtension(s) {
		return Check(s)
	}
	whole, err := Single(s)
	if err != nil {
		return Report{}, explained(err)
	}
	r, err := Check(whole)
	if err != nil {
		return Report{}, err
	}
	r.Digest = s.Digest()
	r.Rules = slices.DeleteFunc(r.Rules, func(rule RuleInfo) bool { return !strings.HasPrefix(rule.File, alonePrefix) })
	for i := range r.Rules {
		r.Rules[i].File = strings.TrimPrefix(r.Rules[i].File, alonePrefix)
	}
	return r, nil
}
