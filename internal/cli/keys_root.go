package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
)

// prepared is a key set that waits for the root's signature, with the version before it.
// The holder of the root key verifies both without any other source.
type prepared struct {
	Current string         `json:"current"` // JWS by the root
	Next    intents.KeySet `json:"next"`
}

// prepare changes a copy of the keys in force.
func prepare(set intents.JWKS, change func(keys []intents.JWK) ([]intents.JWK, error)) (prepared, error) {
	var current intents.KeySet
	if err := intents.PeekClaims(set.KeySet, &current); err != nil {
		return prepared{}, malformed(fmt.Errorf("the router does not publish the signed key set: %w", err))
	}
	keys, err := change(slices.Clone(current.Keys))
	p := prepared{set.KeySet, intents.KeySet{Version: current.Version + 1, Prev: intents.Digest([]byte(set.KeySet)), Keys: keys}}
	return p, err
}

// sign signs the next version. It trusts neither the router nor another machine: the
// root itself must have signed the version before.
func (p prepared) sign(root intents.Signer) (token string, before intents.KeySet, err error) {
	before, _, err = intents.OpenKeySet(p.Current, root.Public())
	if err != nil {
		return "", before, fmt.Errorf("the key set in force is not signed by this root key (%s): %w", root.KID, err)
	}
	if p.Next.Version != before.Version+1 || p.Next.Prev != intents.Digest([]byte(p.Current)) {
		return "", before, errors.New("the prepared key set is not the next version of the one that it names as current: prepare it again")
	}
	token, err = intents.SignKeySet(root, p.Next)
	if err != nil {
		return "", before, err
	}
	return token, before, nil
}

// changes are what a version changes, one per line, for its signer to read.
func changes(before, next intents.KeySet) []string {
	var out []string
	who := func(j intents.JWK) string {
		s := string(j.Role) + " " + j.KID
		if j.Subject != "" {
			s += " (" + j.Subject + "@" + j.Tenant + ")"
		}
		if j.Raw {
			s += ", raw signatures"
		}
		return s
	}
	was := make(map[string]intents.JWK, len(before.Keys))
	for _, j := range before.Keys {
		was[j.KID] = j
	}
	for _, j := range next.Keys {
		old, there := was[j.KID]
		delete(was, j.KID)
		switch {
		case !there:
			out = append(out, "add "+who(j))
		case j.Revoked && !old.Revoked:
			out = append(out, "revoke "+who(j))
		case !j.Revoked && old.Revoked:
			out = append(out, "put back in force, although revoked before: "+who(j))
		case j.NotAfter != old.NotAfter:
			out = append(out, "end "+who(j)+" at "+j.NotAfter)
		case j != old:
			out = append(out, "change "+who(j))
		}
	}
	for _, j := range before.Keys {
		if _, gone := was[j.KID]; gone {
			out = append(out, "remove "+who(j))
		}
	}
	return out
}

// rootFlag declares the file of the root key.
func (c *command) rootFlag(path *string) {
	c.Flags().StringVar(path, "root", "", "root key file (default: the one in the data directory)")
}

// readRoot reads the root key from a file; empty: from the data directory.
func (c *command) readRoot(path string) (intents.Signer, error) {
	if path == "" {
		path = keydir.RootFile(c.keys())
	}
	root, err := intents.ReadKey(path, intents.RoleRoot)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the root key is not in %s: name its file with --root; or write the key set with --prepare FILE and sign it on the machine with the root key (writ keys root sign)", path)
	}
	if err != nil {
		err = malformed(err)
	}
	return root, err
}

func rootShow(c *command) {
	c.dataFlag()
	c.stands = nil // keys may be made before the log
	c.answer = func([]string) (answer, error) {
		res := struct {
			Origin     string `json:"origin"`
			Thumbprint string `json:"thumbprint"`
			File       string `json:"file,omitempty"` // of the private key; absent: it is offline
		}{}
		path := keydir.RootFile(c.keys())
		root, err := intents.ReadKey(path, intents.RoleRoot)
		switch {
		case err == nil:
			res.Thumbprint, res.File = root.KID, path
		case errors.Is(err, fs.ErrNotExist):
			if err := c.archive(func(a *datadir.Archive) error { res.Thumbprint = a.Root.KID; return nil }); err != nil {
				return answer{}, err
			}
		default:
			return answer{}, malformed(err)
		}
		res.Origin = "writ/" + res.Thumbprint
		return answer{data: res, text: res.Thumbprint + " " + cmp.Or(res.File, "offline") + "\n"}, nil
	}
}

func rootMove(c *command) {
	c.run = func(args []string) error {
		from := keydir.RootFile(c.keys())
		root, err := intents.ReadKey(from, intents.RoleRoot)
		if err != nil {
			return malformed(err)
		}
		if err := c.archive(func(a *datadir.Archive) error {
			if a.Root.KID != root.KID {
				return fmt.Errorf("%s is not the root key of the log in %s", from, c.dir)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("the first start needs the root key: %w", err)
		}
		if err := intents.WriteKey(args[0], root); err != nil {
			return err
		}
		again, err := intents.ReadKey(args[0], intents.RoleRoot)
		if err == nil && again.KID != root.KID {
			err = errors.New("it has another key")
		}
		if err != nil {
			return fmt.Errorf("%s cannot be read back, so nothing was removed: %w", args[0], err)
		}
		if err := os.Remove(from); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.std.Err, "the root key is now only in %s; keep a second copy: without it no key can ever be replaced\n", args[0])
		return err
	}
	c.dataFlag()
}

func rootSign(c *command) {
	var path, out string
	c.run = func(args []string) error {
		raw, err := readFile(args[0])
		if err != nil {
			return err
		}
		var p prepared
		if err := intents.UnmarshalStrict(raw, &p); err != nil {
			return malformed(fmt.Errorf("%s: not what --prepare writes: %v", args[0], err))
		}
		root, err := c.readRoot(path)
		if err != nil {
			return err
		}
		token, before, err := p.sign(root)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.std.Err, "%s, version %d:\n", state.Origin(root.Public()), p.Next.Version)
		for _, line := range changes(before, p.Next) {
			fmt.Fprintln(c.std.Err, " ", line)
		}
		if out == "" {
			_, err = fmt.Fprintln(c.std.Out, token)
			return err
		}
		return writeNew(out, []byte(token+"\n"))
	}
	c.rootFlag(&path)
	c.Flags().StringVarP(&out, "out", "o", "", "file (default: standard output)")
	c.dataFlag()
	c.stands = nil // there is none where the root key is offline
}
