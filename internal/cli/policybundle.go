package cli

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/policies"
)

func policyBundle(std IO) *cobra.Command {
	return group("bundle", "Build, sign and verify OPA bundles", bundleBuild(std), bundleSign(std), bundleVerify(std))
}

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

// bundleKey reads the private key that signs; none is named: nil.
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

// write opens what was made as its reader will, and writes it.
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

func bundleBuild(std IO) *cobra.Command {
	var out, keyFile string
	var revision int64
	cmd := answering(std, &cobra.Command{
		Use: "build DIR --revision N --out FILE", Short: "Make a bundle of a tree that compiles; with --key, a signed one", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, malformed(err)
		}
		if _, err := policies.Check(cmd.Context(), tree.Source); err != nil {
			return answer{}, no(err)
		}
		if tree.Revision = revision; revision < 1 {
			return answer{}, usage(errors.New("--revision: a number from 1"))
		}
		key, err := bundleKey(keyFile)
		if err != nil {
			return answer{}, err
		}
		raw, err := policies.BuildBundle(tree, key)
		if err != nil {
			return answer{}, no(err)
		}
		return built{}.write(out, raw, key)
	})
	cmd.Flags().StringVarP(&out, "out", "o", "bundle.tar.gz", "file")
	cmd.Flags().Int64Var(&revision, "revision", 0, "of the bundle: only a higher one replaces what is in force")
	cmd.Flags().StringVar(&keyFile, "key", "", "private key file (PEM) that signs")
	mustGive(cmd, "revision")
	return cmd
}

func bundleSign(std IO) *cobra.Command {
	var out, keyFile string
	cmd := answering(std, &cobra.Command{
		Use: "sign BUNDLE --key KEY", Short: "Sign a bundle, in place of any signature that it has", Args: cobra.ExactArgs(1),
	}, func(_ *cobra.Command, args []string) (answer, error) {
		key, err := bundleKey(keyFile)
		if err != nil {
			return answer{}, err
		}
		raw, err := os.ReadFile(args[0])
		if err != nil {
			return answer{}, malformed(err)
		}
		if raw, err = policies.SignBundle(raw, *key); err != nil {
			return answer{}, malformed(err)
		}
		if out == "" {
			out = args[0]
		}
		return built{}.write(out, raw, key)
	})
	cmd.Flags().StringVarP(&out, "out", "o", "", "file (default: in place)")
	cmd.Flags().StringVar(&keyFile, "key", "", "private key file (PEM) that signs")
	mustGive(cmd, "key")
	return cmd
}

func bundleVerify(std IO) *cobra.Command {
	var keyFile string
	cmd := answering(std, &cobra.Command{
		Use: "verify BUNDLE --key PUBLIC", Short: "Check that a bundle is whole, signed by a key, and compiles", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		text, err := os.ReadFile(keyFile) //nolint:gosec // G304: the user names the file
		if err != nil {
			return answer{}, malformed(err)
		}
		key, err := policies.ParsePublicKey(text)
		if err != nil {
			return answer{}, malformed(fmt.Errorf("%s: %w", keyFile, err))
		}
		raw, err := os.ReadFile(args[0])
		if err != nil {
			return answer{}, malformed(err)
		}
		tree, err := policies.ReadBundle(raw, key)
		if err != nil {
			return answer{}, no(err)
		}
		r, err := policies.Check(cmd.Context(), tree.Source)
		if err != nil {
			return answer{}, no(err)
		}
		return built{tree.Revision, r.Digest, len(raw), true, intents.Thumbprint(key)}.answer(), nil
	})
	cmd.Flags().StringVar(&keyFile, "key", "", "public key file: PEM or JWK")
	mustGive(cmd, "key")
	return cmd
}

func policyPush(std IO) *cobra.Command {
	var f operatorFlags
	var revision int64
	cmd := answering(std, &cobra.Command{
		Use: "push DIR|BUNDLE --revision N", Short: "Put a tree in force by an operator's order: proved, then swapped whole", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, malformed(err)
		}
		if revision > 0 {
			tree.Revision = revision
		}
		if tree.Revision < 1 {
			return answer{}, usage(errors.New("--revision: a number from 1; a bundle has its own"))
		}
		if _, err := policies.Check(cmd.Context(), tree.Source); err != nil {
			return answer{}, no(err)
		}
		raw, err := policies.BuildBundle(tree, nil) // the order is signed
		if err != nil {
			return answer{}, no(err)
		}
		o, err := f.open(cmd.Context())
		if err != nil {
			return answer{}, err
		}
		push := catalog.PolicyPush{Revision: tree.Revision, Digest: tree.Source.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}
		a, err := o.order(cmd.Context(), "policy.push", push)
		if err != nil {
			return answer{}, err
		}
		return answer{text: fmt.Sprintf("revision %d in force  %s  by %s\n", push.Revision, push.Digest, a.IntentID), data: struct {
			put
			Revision int64  `json:"revision"`
			Digest   string `json:"digest"`
		}{putBy(a), push.Revision, push.Digest}}, nil
	}, f.add)
	cmd.Flags().Int64Var(&revision, "revision", 0, "higher than the one in force (default: the bundle's)")
	return cmd
}
