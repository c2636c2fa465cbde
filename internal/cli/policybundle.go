package cli

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/policies"
)

// built is what the commands about bundles print.
type built struct {
	Revision int64  `json:"revision"`
	Digest   string `json:"digest"`
	Bytes    int    `json:"bytes"`
	Signed   bool   `json:"signed"`
	KID      string `json:"kid,omitempty"`
}

func (b built) answer() answer {
	by := "unsigned"
	if b.Signed {
		by = "signed by " + b.KID
	}
	return answer{data: b, text: fmt.Sprintf("revision %d  %s  %d bytes, %s\n", b.Revision, b.Digest, b.Bytes, by)}
}

// bundleKey reads the private key that signs; no path: nil.
func bundleKey(path string) (*intents.Signer, error) {
	if path == "" {
		return nil, nil
	}
	s, err := intents.ReadKey(path, intents.RoleOperator)
	if err != nil {
		return nil, malformed(err)
	}
	return &s, nil
}

// write checks a bundle as its reader will, and writes it.
func (b built) write(out string, raw []byte, key *intents.Signer) (answer, error) {
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
	keyFile := c.Flags().String("key", "", "private key file (PEM) that signs")
	out := c.Flags().StringP("out", "o", "bundle.tar.gz", "file")
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
		key, err := bundleKey(*keyFile)
		if err != nil {
			return answer{}, err
		}
		raw, err := policies.BuildBundle(tree, key)
		if err != nil {
			return answer{}, err
		}
		return built{}.write(*out, raw, key)
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
		raw, err := policies.BuildBundle(tree, nil) // the order is signed
		if err != nil {
			return answer{}, err
		}
		push := catalog.PolicyPush{Revision: tree.Revision, Digest: tree.Source.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}
		a, err := c.order("policy.push", push)
		if err != nil {
			return answer{}, err
		}
		return answer{note: c.unmatchedInPolicy(tree), text: fmt.Sprintf("revision %d in force  %s  by %s\n", push.Revision, push.Digest, a.IntentID), data: struct {
			put
			Revision int64  `json:"revision"`
			Digest   string `json:"digest"`
		}{putBy(a), push.Revision, push.Digest}}, nil
	}
}

// unmatchedInPolicy says which names in a tree match nothing, if the record of the data directory can be read.
func (c *command) unmatchedInPolicy(tree policies.Tree) string {
	d, err := c.folded()
	engine, broken := policies.New(c.Context(), tree.Source)
	if err != nil || broken != nil {
		return ""
	}
	versions, _ := datadir.ReadSkillVersions(c.dir)           // without them those that are approved
	types, _ := (&catalogFlags{url: c.url}).open(c.Context()) // of the router that has the policy now
	return warned(datadir.UnmatchedInPolicy(engine, d, types, versions))
}
