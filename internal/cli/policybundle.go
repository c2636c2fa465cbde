package cli

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/policies"
)

// bundleReport is the output of the commands about bundles.
type bundleReport struct {
	Revision int64  `json:"revision"`
	Digest   string `json:"digest"`
	Bytes    int    `json:"bytes"`
	Signed   bool   `json:"signed"`
	KID      string `json:"kid,omitempty"`
}

func (b bundleReport) answer() answer {
	by := "unsigned"
	if b.Signed {
		by = "signed by " + b.KID
	}
	return answer{data: b, text: fmt.Sprintf("revision %d  %s  %d bytes, %s\n", b.Revision, b.Digest, b.Bytes, by)}
}

// write checks a bundle as its reader will, and writes it.
func (b bundleReport) write(out string, raw []byte, key *intents.Signer) (answer, error) {
	var pub ed25519.PublicKey
	if key != nil {
		pub, b.Signed, b.KID = key.Public(), true, key.KID
	}
	tree, err := policies.ReadBundle(raw, pub)
	if err != nil {
		return answer{}, err
	}
	b.Revision, b.Digest, b.Bytes = tree.Revision, tree.Source.Digest(), len(raw)
	return b.answer(), durable.Write(out, raw)
}

func bundleBuild(c *command) {
	c.signerFlag("private key file that signs it (default: it is not signed)")
	c.outFlag("bundle.tar.gz", "file for the bundle")
	revision := c.Flags().Int64("revision", 0, "revision of the bundle; only a higher one replaces the one in force")
	c.mustGive("revision")
	c.answer = func(args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, err
		}
		if _, err := policies.CheckAny(c.Context(), tree.Source); err != nil {
			return answer{}, err
		}
		if tree.Revision = *revision; *revision < 1 {
			return answer{}, usage(errors.New("--revision: must be at least 1"))
		}
		var key *intents.Signer
		if c.signer != "" {
			s, err := c.signingKey(intents.RoleOperator)
			if err != nil {
				return answer{}, err
			}
			key = &s
		}
		raw, err := policies.BuildBundle(tree, key)
		if err != nil {
			return answer{}, err
		}
		return bundleReport{}.write(c.out, raw, key)
	}
}

func policyPush(c *command) {
	c.operatorFlags()
	revision := c.Flags().Int64("revision", 0, "revision, higher than the one in force (default: the bundle's)")
	c.answer = func(args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, err
		}
		if *revision > 0 {
			tree.Revision = *revision
		}
		if tree.Revision < 1 {
			return answer{}, usage(errors.New("--revision: must be at least 1; only a bundle has its own"))
		}
		if _, err := policies.Check(c.Context(), tree.Source); err != nil {
			return answer{}, err
		}
		raw, err := policies.BuildBundle(tree, nil) // the intent is signed
		if err != nil {
			return answer{}, err
		}
		push := catalog.PolicyPush{Revision: tree.Revision, Digest: tree.Source.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}
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
		return answer{note: p.text() + c.unmatchedInPolicy(tree.Source, types), text: fmt.Sprintf("revision %d in force  %s  by %s\n", push.Revision, push.Digest, a.IntentID), data: struct {
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
