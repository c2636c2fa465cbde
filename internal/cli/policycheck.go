package cli

import (
	"fmt"
	"strings"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/policies"
)

// readTree reads the tree of the directory that a command names; none: the embedded one.
func readTree(args []string) (policies.Source, error) {
	if len(args) == 0 {
		return policies.Embedded(), nil
	}
	tree, err := policies.ReadDir(args[0])
	if err != nil {
		err = malformed(err)
	}
	return tree, err
}

func policyCheck(c *command) {
	c.stands = func() error {
		if c.dir == "" {
			return nil
		}
		return datadir.Exists(c.dir)
	}
	c.Flags().StringVar(&c.dir, "data", "", "warn of names in the policy and in tenants' data that match nothing in this data directory")
	c.answer = func(args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, err
		}
		r, err := policies.CheckAny(c.Context(), tree)
		if err != nil {
			return answer{}, err
		}
		a := answer{data: r, text: render("policy.table", r)}
		if len(r.Volatile) > 0 {
			a.note = fmt.Sprintf("warning: %s is almost never the same twice: nearly every intent is evaluated again\n", strings.Join(r.Volatile, ", "))
		}
		if c.dir != "" {
			names, err := c.unmatchedWith(tree)
			if a.note += names; err != nil {
				return answer{}, err
			}
		}
		return a, nil
	}
}

// unmatchedWith lists the names that match nothing in a data directory if a tree is in force or,
// for an extension, added.
func (c *command) unmatchedWith(tree policies.Source) (text string, err error) {
	d, err := c.rebuildState()
	if err == nil && policies.IsExtension(tree) {
		tree, err = policies.Single(tree)
	}
	if err != nil {
		return "", err
	}
	versions, _ := approval.ReadVersions(c.dir) // without them those that are approved
	text = c.unmatchedInPolicy(tree, catalog.Builtin())
	for _, tenant := range d.Tenants() {
		text += warned(datadir.UnmatchedNames(d, tenant, versions))
	}
	return text, nil
}
