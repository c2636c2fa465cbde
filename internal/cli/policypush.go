package cli

import (
	"encoding/base64"
	"errors"
	"fmt"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/policies"
)

func policyPush(c *command) {
	c.operatorFlags()
	revision := c.Flags().Int64("revision", 0, "revision, higher than the one in force")
	c.mustGive("revision")
	c.answer = func(args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, err
		}
		if *revision < 1 {
			return answer{}, usage(errors.New("--revision: must be at least 1"))
		}
		if _, err := policies.Check(c.Context(), tree); err != nil {
			return answer{}, err
		}
		raw, err := policies.BuildBundle(policies.Tree{Source: tree, Revision: *revision})
		if err != nil {
			return answer{}, err
		}
		push := catalog.PolicyPush{Revision: *revision, Digest: tree.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}
		o, err := c.operator()
		if err != nil {
			return answer{}, err
		}
		a, err := c.submitAs(o, "policy.push", push)
		if err != nil {
			return answer{}, err
		}
		p := putBy(a)
		p.Changes = c.changesBy(o.Origin, "", a)
		types, _ := (&catalogFlags{url: c.url}).open(c.Context()) // of the router that has the policy now
		return answer{note: p.text() + c.unmatchedInPolicy(tree, types), text: fmt.Sprintf("revision %d in force  %s  by %s\n", push.Revision, push.Digest, a.IntentID), data: struct {
			put
			Revision int64  `json:"revision"`
			Digest   string `json:"digest"`
		}{p, push.Revision, push.Digest}}, nil
	}
}

// unmatchedInPolicy lists the names in a tree that match nothing, if the record of the data
// directory can be read.
func (c *command) unmatchedInPolicy(tree policies.Source, types *catalog.Catalog) string {
	d, err := c.rebuildState()
	engine, broken := policies.New(c.Context(), tree)
	if err != nil || broken != nil {
		return ""
	}
	versions, _ := approval.ReadVersions(c.dir) // without them those that are approved
	return warned(datadir.UnmatchedInPolicy(engine, d, types, versions))
}
