package policies

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// aloneName is the name of an extension that is looked at by itself.
const aloneName = "extension"

// alonePrefix is where its files are in the tree that Alone makes.
const alonePrefix = "ext/" + aloneName + "/"

// IsExtension says whether a tree has no rules of its own to decide by, so that
// it can only be one that tightens another.
func IsExtension(s Source) bool {
	for file, content := range s.Deciding() {
		m, err := parseModule(file, content)
		if err == nil && strings.HasSuffix(file, ".rego") && m.Package.Path.String() == "data.writ.authz" {
			return false
		}
	}
	return len(s) > 0
}

// Alone is an extension on the embedded tree.
func Alone(s Source) (Source, error) { return On(Embedded(), s) }

// On is an extension on a tree, whose own tests are left out, in the place of what the tree has of the
// same packages.
func On(base, s Source) (Source, error) {
	kept := base.Deciding()
	theirs, own := packagesOf(kept), map[string]bool{}
	for _, name := range packagesOf(s.Deciding()) {
		own[name] = true
	}
	maps.DeleteFunc(kept, func(file string, _ []byte) bool { return own[theirs[file]] })
	return Extend(kept, map[string]Source{aloneName: s})
}

// packagesOf are the packages of the modules of a tree, by file. What cannot be read is refused where it is compiled.
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

// CheckAny is Check for a tree that decides, or for an extension by itself: then the
// report has its rules and no others, its digest, and what is read with it.
func CheckAny(ctx context.Context, s Source) (Report, error) {
	if !IsExtension(s) {
		return Check(ctx, s)
	}
	whole, err := Alone(s)
	if err != nil {
		return Report{}, explained(err)
	}
	r, err := Check(ctx, whole)
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
