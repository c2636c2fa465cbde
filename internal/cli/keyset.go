package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

// defaultOverlap is how long a replaced key is still accepted: longer than any grant, ticket or
// intent that it signed.
const defaultOverlap = 24 * time.Hour

// changeFlags are those of commands that change the key set.
type changeFlags struct {
	*command
	root, prepare string
}

func (c *command) changeFlags() *changeFlags {
	f := &changeFlags{command: c}
	c.operatorFlags()
	c.rootFlag(&f.root)
	c.Flags().StringVar(&f.prepare, "prepare", "", "write the key set to this file instead, to sign it on the machine with the root key")
	return f
}

// changeView is the output of a change with --json.
type changeView struct {
	put
	Version int64  `json:"version"`
	KID     string `json:"kid"`
	File    string `json:"file,omitempty"` // of the new private key
	Waits   string `json:"prepared,omitempty"`
}

// apply signs a change and puts it in force, or writes it to a file for the root key to
// sign. made, if not nil, stores a new private key and returns its file. It is stored
// before the key set names it.
func (f *changeFlags) apply(o *operator, kid string, change func([]intents.JWK) ([]intents.JWK, error), made func() (string, error)) (answer, error) {
	p, before, err := prepare(o.set, change)
	if err != nil {
		return answer{}, err
	}
	res := changeView{Version: p.Next.Version, KID: kid}
	var token string
	if f.prepare == "" {
		root, err := f.readRoot(f.root)
		if err != nil {
			return answer{}, err
		}
		if token, _, err = p.sign(root); err != nil {
			return answer{}, err
		}
	}
	if made != nil {
		if res.File, err = made(); err != nil {
			return answer{}, err
		}
	}
	if f.prepare != "" {
		raw, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			return answer{}, err
		}
		if err := writeNew(f.prepare, append(raw, '\n')); err != nil {
			return answer{}, err
		}
		res.Waits = f.prepare
		fmt.Fprintf(f.std.Err, "not in force yet: sign %s on the machine with the root key (writ admin keys root sign), then run writ admin keys put\n", f.prepare)
		return res.answer(), nil
	}
	a, err := f.submitAs(o, "key.put", catalog.KeyPut{KeySet: token})
	if err != nil {
		return answer{}, err
	}
	res.put = putBy(a)
	res.Changes = keyRowsOf(before.Keys).changed(keyRowsOf(p.Next.Keys))
	return res.answer(), nil
}

func (c changeView) answer() answer {
	a := answer{data: c, text: c.KID + "\n"}
	if c.Changes != nil {
		a.note = c.put.text()
	}
	if c.File != "" {
		a.note += "private key: " + c.File + "\n"
	}
	return a
}

func keysRotate(c *command) {
	f := c.changeFlags()
	overlap := c.Flags().Duration("overlap", defaultOverlap, "how long the old key is still accepted")
	c.answer = func(args []string) (answer, error) {
		role := intents.Role(args[0])
		if role == intents.RoleRoot || !slices.Contains(keydir.Roles, role) {
			return answer{}, usage(fmt.Errorf("%q is not a role whose key can be rotated: gateway, manager, planner, workflow, operator, router, ledger", args[0]))
		}
		if *overlap < 0 {
			return answer{}, usage(errors.New("--overlap: must not be negative"))
		}
		o, err := c.operator()
		if err != nil {
			return answer{}, err
		}
		s, err := intents.GenerateSigner(role)
		if err != nil {
			return answer{}, err
		}
		j := s.VerificationKey().ToJWK()
		if role == intents.RoleOperator {
			j.Subject, j.Tenant = o.Subject, o.Tenant
		}
		ends := time.Now().Add(*overlap)
		replace := func(keys []intents.JWK) ([]intents.JWK, error) { return replaced(keys, j, ends), nil }
		return f.apply(o, s.KID, replace, func() (string, error) { return keydir.Add(c.keys(), s) })
	}
}

// replaced adds a key, and sets the end of the keys that it replaces.
func replaced(keys []intents.JWK, next intents.JWK, ends time.Time) []intents.JWK {
	for i, k := range keys {
		if k.Role != next.Role || k.Subject != next.Subject || k.Tenant != next.Tenant || k.Revoked || k.Raw != next.Raw {
			continue
		}
		if at, err := time.Parse(time.RFC3339, k.NotAfter); err == nil && at.Before(ends) {
			continue // ends earlier already
		}
		keys[i].NotAfter = ends.UTC().Format(time.RFC3339)
	}
	return append(keys, next)
}

func keysAdd(c *command) {
	var subject, jwk string
	c.Aliases = []string{"new"}
	f := c.changeFlags()
	raw := c.Flags().Bool("raw", false, "the key signs as ed25519:<base64>, and in no other form")
	c.answer = func([]string) (answer, error) {
		if (c.out == "") == (jwk == "") {
			return answer{}, usage(errors.New("give exactly one of --out and --jwk"))
		}
		j, made, err := newOperator(c.out, jwk)
		if err != nil {
			return answer{}, err
		}
		j.Subject, j.Tenant, j.Revoked, j.NotAfter, j.Raw = subject, c.tenant, false, "", *raw
		o, err := c.operator()
		if err != nil {
			return answer{}, err
		}
		return f.apply(o, j.KID, func(keys []intents.JWK) ([]intents.JWK, error) {
			if slices.ContainsFunc(keys, func(k intents.JWK) bool { return k.KID == j.KID }) {
				return nil, fmt.Errorf("the key %s is in the key set already", j.KID)
			}
			return append(keys, j), nil
		}, made)
	}
	c.Flags().StringVar(&subject, "subject", "", "user id of the operator in the tenant")
	c.Flags().StringVar(&c.tenant, "tenant", "", "tenant of the operator")
	c.outFlag("", "file for a private key, which is made; it must not exist")
	c.Flags().StringVar(&jwk, "jwk", "", "file with the public key as JWK")
	c.mustGive("subject", "tenant")
}

// newOperator makes an operator's key, or reads its public half.
func newOperator(out, jwk string) (intents.JWK, func() (string, error), error) {
	if jwk == "" {
		s, err := intents.GenerateSigner(intents.RoleOperator)
		if err != nil {
			return intents.JWK{}, nil, err
		}
		return s.VerificationKey().ToJWK(), func() (string, error) { return out, intents.WriteKey(out, s) }, nil
	}
	raw, err := readFile(jwk)
	if err != nil {
		return intents.JWK{}, nil, err
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

func keysRevoke(c *command) {
	f := c.changeFlags()
	c.answer = func(args []string) (answer, error) {
		o, err := c.operator()
		if err != nil {
			return answer{}, err
		}
		kid, err := kidOf(o.set.Keys, args[0])
		if err != nil {
			return answer{}, err
		}
		return f.apply(o, kid, func(keys []intents.JWK) ([]intents.JWK, error) { return revoked(keys, kid) }, nil)
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w: put a KID that begins with - last, after --: writ admin keys revoke --url URL -- KID", err))
	})
}

// kidOf finds the kid that begins with the given characters.
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
		return "", fmt.Errorf("%s: no kid in the key set begins with %q; give at least six characters of one that writ admin keys list shows", intents.KeyUnknown, start)
	default:
		return "", fmt.Errorf("%q is the beginning of %d kids: give more characters", start, len(found))
	}
}

// revoked marks a key as revoked. It must not be the last one of a role that needs one.
func revoked(keys []intents.JWK, kid string) ([]intents.JWK, error) {
	i := slices.IndexFunc(keys, func(k intents.JWK) bool { return k.KID == kid })
	switch {
	case i < 0:
		return nil, errors.New("the key is no longer in the key set")
	case keys[i].Revoked:
		return nil, fmt.Errorf("%s is revoked already", kid)
	}
	keys[i].Revoked = true
	needed := keys[i].Role != intents.RoleOperator || keys[i].Tenant == keydir.LocalTenant && !keys[i].Raw
	if needed && !slices.ContainsFunc(keys, func(k intents.JWK) bool {
		return k.Role == keys[i].Role && !k.Revoked && !k.Raw && (k.Role != intents.RoleOperator || k.Tenant == keydir.LocalTenant)
	}) {
		return nil, fmt.Errorf("this is the last %s key in force: put another in force first (writ admin keys rotate %s), then revoke this one", keys[i].Role, keys[i].Role)
	}
	return keys, nil
}

func keysPut(c *command) {
	c.operatorFlags()
	c.answer = func(args []string) (answer, error) {
		raw, err := c.input(args)
		if err != nil {
			return answer{}, err
		}
		token := strings.TrimSpace(string(raw))
		var next intents.KeySet
		if err := intents.PeekClaims(token, &next); err != nil {
			return answer{}, malformed(errors.New("the input is not what `writ admin keys root sign` prints"))
		}
		o, err := c.operator()
		if err != nil {
			return answer{}, err
		}
		a, err := c.submitAs(o, "key.put", catalog.KeyPut{KeySet: token})
		if err != nil {
			return answer{}, err
		}
		p := putBy(a)
		p.Changes = keyRowsOf(o.set.Keys).changed(keyRowsOf(next.Keys))
		return answer{data: changeView{put: p, Version: next.Version}, text: fmt.Sprintln("version", next.Version), note: p.text()}, nil
	}
}
