package cli

import (
	"fmt"
	"strings"

	"aob.dev/writ/policies"
)

// readTree reads the tree that a command names; none: the embedded one. It does not
// check signatures of bundles, because the user already trusts the tree.
func readTree(args []string) (tree policies.Tree, err error) {
	switch {
	case len(args) == 0:
		return policies.Tree{Source: policies.Embedded()}, nil
	case strings.HasSuffix(args[0], ".tar.gz"):
		var raw []byte
		if raw, err = readFile(args[0]); err == nil {
			tree, err = policies.ReadBundle(raw, nil)
		}
	default:
		tree.Source, err = policies.ReadDir(args[0])
	}
	if err != nil {
		err = malformed(err)
	}
	return tree, err
}

func policyCheck(c *command) {
	c.answer = func(args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, err
		}
		r, err := policies.CheckAny(c.Context(), tree.Source)
		if err != nil {
			return answer{}, err
		}
		a := answer{data: r, text: render("policy.table", r)}
		if len(r.Volatile) > 0 {
			a.note = fmt.Sprintf("warning: %s is almost never the same twice: nearly every order is evaluated again\n", strings.Join(r.Volatile, ", "))
		}
		return a, nil
	}
}
