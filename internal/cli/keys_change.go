package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

// defaultOverlap is how long a key that another follows is still accepted: longer
// than any grant, ticket or order that it signed.
const defaultOverlap = 24 * time.Hour

// changeFlags are those of commands that change the key set.
type changeFlags struct {
	operatorFlags
	root, prepare string
}

func (f *changeFlags) add(cmd *cobra.Command) {
	f.operatorFlags.add(cmd)
	cmd.Flags().StringVar(&f.root, "root", "", "root key file (default: the one of the data directory)")
	cmd.Flags().StringVar(&f.prepare, "prepare", "", "write the key set to this file instead, to be signed where the root key is")
}

// changed is what a change prints with --json.
type changed struct {
	put
	Version int64  `json:"version"`
	KID     string `json:"kid"`
	File    string `json:"file,omitempty"` // of the new private key
	Waits   string `json:"prepared,omitempty"`
}

// apply has a change signed and puts it in force, or writes it down for the root
// key to sign. made, if not nil, keeps a new private key and gives its file: it is
// kept before the key set names it.
func (f *changeFlags) apply(ctx context.Context, std IO, o *operator, kid string, change func([]intents.JWK) ([]intents.JWK, error), made func() (string, error)) (answer, error) {
	p, err := prepare(o.set, change)
	if err != nil {
		return answer{}, err
	}
	res := changed{Version: p.Next.Version, KID: kid}
	var token string
	if f.prepare == "" {
		root, err := readRoot(f.root, &f.operatorFlags)
		if err != nil {
			return answer{}, err
		}
		if token, _, err = p.sign(root); err != nil {
			return answer{}, err
		}
	}
	if made != nil {
		if res.File, err = made(); err != nil {
			return answer{}, no(err)
		}
	}
	if f.prepare != "" {
		raw, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			return answer{}, no(err)
		}
		if err := writeNew(f.prepare, append(raw, '\n')); err != nil {
			return answer{}, no(err)
		}
		res.Waits = f.prepare
		fmt.Fprintf(std.Err, "not in force yet: sign %s where the root key is (writ keys root sign), then writ keys put\n", f.prepare)
		return res.answer(), nil
	}
	a, err := o.order(ctx, "key.put", catalog.KeyPut{KeySet: token})
	if err != nil {
		return answer{}, err
	}
	res.put = putBy(a)
	return res.answer(), nil
}

func (c changed) answer() answer {
	a := answer{data: c, text: c.KID + "\n"}
	if c.File != "" {
		a.note = "private key: " + c.File + "\n"
	}
	return a
}

func keysRotate(std IO) *cobra.Command {
	var f changeFlags
	var overlap time.Duration
	cmd := answering(std, &cobra.Command{
		Use: "rotate ROLE", Short: "Give a role a new key; the old one is accepted for a while", Args: cobra.ExactArgs(1),
		Long: "Make a new key for a role (gateway, manager, planner, workflow, operator, router, ledger)\n" +
			"in the data directory and put it in force. A running writ signs with it from then on,\n" +
			"without a restart; what the old key signed stays valid, and the old key itself is\n" +
			"accepted until --overlap is over.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		role := intents.Role(args[0])
		if role == intents.RoleRoot || !slices.Contains(keydir.Roles, role) {
			return answer{}, usage(fmt.Errorf("%q is no role with a key to rotate: gateway, manager, planner, workflow, operator, router, ledger", args[0]))
		}
		if overlap < 0 {
			return answer{}, usage(errors.New("--overlap: must not be negative"))
		}
		o, err := f.open(cmd.Context())
		if err != nil {
			return answer{}, err
		}
		s, err := intents.GenerateSigner(role)
		if err != nil {
			return answer{}, no(err)
		}
		j := s.VerificationKey().ToJWK()
		if role == intents.RoleOperator {
			j.Subject, j.Tenant = o.subject, o.tenant
		}
		ends := time.Now().Add(overlap)
		follow := func(keys []intents.JWK) ([]intents.JWK, error) { return followed(keys, j, ends), nil }
		return f.apply(cmd.Context(), std, o, s.KID, follow, func() (string, error) { return keydir.Add(f.keys(), s) })
	}, f.add)
	cmd.Flags().DurationVar(&overlap, "overlap", defaultOverlap, "how long the old key is still accepted")
	return cmd
}

// followed ends the keys that a new one follows, and adds it.
func followed(keys []intents.JWK, next intents.JWK, ends time.Time) []intents.JWK {
	for i, k := range keys {
		if k.Role != next.Role || k.Subject != next.Subject || k.Tenant != next.Tenant || k.Revoked {
			continue
		}
		if at, err := time.Parse(time.RFC3339, k.NotAfter); err == nil && at.Before(ends) {
			continue // ends earlier already
		}
		keys[i].NotAfter = notAfter(ends)
	}
	return append(keys, next)
}

func keysAdd(std IO) *cobra.Command {
	var f changeFlags
	var subject, tenant, out, jwk string
	cmd := answering(std, &cobra.Command{
		Use: "add --subject USER --tenant T (--out FILE|--jwk FILE)", Short: "Put another operator's key in force", Args: cobra.NoArgs,
		Long: "Put the key of a person in force who operates a tenant. With --out a key is made here;\n" +
			"with --jwk the person keeps the private key and hands over the public one, such as a\n" +
			"hardware key's. What they may do their user row says (writ user put).",
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		if (out == "") == (jwk == "") {
			return answer{}, usage(errors.New("exactly one of --out and --jwk"))
		}
		j, made, err := newOperator(out, jwk)
		if err != nil {
			return answer{}, err
		}
		j.Subject, j.Tenant, j.Revoked, j.NotAfter = subject, tenant, false, ""
		o, err := f.open(cmd.Context())
		if err != nil {
			return answer{}, err
		}
		return f.apply(cmd.Context(), std, o, j.KID, func(keys []intents.JWK) ([]intents.JWK, error) {
			if slices.ContainsFunc(keys, func(k intents.JWK) bool { return k.KID == j.KID }) {
				return nil, no(fmt.Errorf("the key %s is in the key set already", j.KID))
			}
			return append(keys, j), nil
		}, made)
	}, f.add)
	cmd.Flags().StringVar(&subject, "subject", "", "the person: a user id of the tenant")
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant that they operate")
	cmd.Flags().StringVar(&out, "out", "", "make a private key in this file")
	cmd.Flags().StringVar(&jwk, "jwk", "", "file with the public key as JWK")
	mustGive(cmd, "subject", "tenant")
	return cmd
}

// newOperator makes an operator's key, or reads its public half.
func newOperator(out, jwk string) (intents.JWK, func() (string, error), error) {
	if jwk == "" {
		s, err := intents.GenerateSigner(intents.RoleOperator)
		if err != nil {
			return intents.JWK{}, nil, no(err)
		}
		return s.VerificationKey().ToJWK(), func() (string, error) { return out, intents.WriteKey(out, s) }, nil
	}
	raw, err := os.ReadFile(jwk) //nolint:gosec // G304: the user names the file
	if err != nil {
		return intents.JWK{}, nil, malformed(err)
	}
	var j intents.JWK
	if err := json.Unmarshal(raw, &j); err != nil {
		return j, nil, malformed(fmt.Errorf("%s: not a JWK: %v", jwk, err))
	}
	j.Role = intents.RoleOperator
	if _, err := j.ToKey(); err != nil {
		return j, nil, malformed(fmt.Errorf("%s: %w", jwk, err))
	}
	return j, nil, nil
}

func keysRevoke(std IO) *cobra.Command {
	var f changeFlags
	cmd := answering(std, &cobra.Command{
		Use: "revoke KID", Short: "Refuse a key from now on", Args: cobra.ExactArgs(1),
		Long: "Revoke a key: every later order, grant and ticket of it is KEY_REVOKED, at once. What it\n" +
			"signed before keeps its verdict. KID may be its first characters; one that begins with -\n" +
			"goes last, after --. The last key of a role is not revoked: rotate first.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		o, err := f.open(cmd.Context())
		if err != nil {
			return answer{}, err
		}
		kid, err := kidOf(o.set.Keys, args[0])
		if err != nil {
			return answer{}, no(err)
		}
		return f.apply(cmd.Context(), std, o, kid, func(keys []intents.JWK) ([]intents.JWK, error) { return revoked(keys, kid) }, nil)
	}, f.add)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w: a KID that begins with - goes last, after --: writ keys revoke --url URL -- KID", err))
	})
	return cmd
}

// kidOf completes the first characters of a kid.
func kidOf(keys []intents.JWK, start string) (string, error) {
	var found []string
	for _, k := range keys {
		if k.KID == start {
			return start, nil
		}
		if len(start) >= 6 && strings.HasPrefix(k.KID, start) {
			found = append(found, k.KID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("%s: no key with this kid (six characters or more of it) is in the key set: see writ keys list", intents.KeyUnknown)
	default:
		return "", fmt.Errorf("%q begins %d kids: give more of it", start, len(found))
	}
}

// revoked marks a key; nobody may be left without one who is needed.
func revoked(keys []intents.JWK, kid string) ([]intents.JWK, error) {
	i := slices.IndexFunc(keys, func(k intents.JWK) bool { return k.KID == kid })
	switch {
	case i < 0:
		return nil, no(errors.New("the key has left the key set meanwhile"))
	case keys[i].Revoked:
		return nil, no(fmt.Errorf("%s is revoked already", kid))
	}
	keys[i].Revoked = true
	needed := keys[i].Role != intents.RoleOperator || keys[i].Tenant == keydir.LocalTenant
	if needed && !slices.ContainsFunc(keys, func(k intents.JWK) bool {
		return k.Role == keys[i].Role && !k.Revoked && (k.Role != intents.RoleOperator || k.Tenant == keydir.LocalTenant)
	}) {
		return nil, no(fmt.Errorf("it is the last %s key in force: put another in force first (writ keys rotate %s), then revoke this one", keys[i].Role, keys[i].Role))
	}
	return keys, nil
}

func keysPut(std IO) *cobra.Command {
	var f operatorFlags
	return answering(std, &cobra.Command{
		Use: "put [FILE|-]", Short: "Put a signed key set in force", Args: cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		raw, err := input(std, args)
		if err != nil {
			return answer{}, malformed(err)
		}
		token := strings.TrimSpace(string(raw))
		var next intents.KeySet
		if err := intents.PeekClaims(token, &next); err != nil {
			return answer{}, malformed(errors.New("not what `writ keys root sign` prints"))
		}
		o, err := f.open(cmd.Context())
		if err != nil {
			return answer{}, err
		}
		a, err := o.order(cmd.Context(), "key.put", catalog.KeyPut{KeySet: token})
		if err != nil {
			return answer{}, err
		}
		return answer{data: changed{put: putBy(a), Version: next.Version}, text: fmt.Sprintln("version", next.Version)}, nil
	}, f.add)
}
