package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
)

// keyRow is one key of `writ admin keys list` and `writ admin keys init`. Scripts rely on the shape.
type keyRow struct {
	KID      string       `json:"kid"`
	Role     intents.Role `json:"role"`
	Subject  string       `json:"subject,omitempty"`
	Tenant   string       `json:"tenant,omitempty"`
	NotAfter string       `json:"not_after,omitempty"`
	Revoked  bool         `json:"revoked"`
	Raw      bool         `json:"raw"`  // it signs as ed25519:<base64>
	Here     bool         `json:"here"` // the private half is in the data directory
}

type keyList struct {
	Origin  string   `json:"origin"`
	Version int64    `json:"version"`
	Keys    []keyRow `json:"keys"`
}

func (l keyList) answer() answer {
	return answer{data: l, note: fmt.Sprintf("%s, version %d\n", l.Origin, l.Version), text: render("keys.table", l)}
}

func rowsOf(keys []intents.JWK, here func(kid string) bool) []keyRow {
	rows := make([]keyRow, 0, len(keys))
	for _, j := range keys {
		rows = append(rows, keyRow{j.KID, j.Role, j.Subject, j.Tenant, j.NotAfter, j.Revoked, j.Raw, here(j.KID)})
	}
	return rows
}

func keysInit(c *command) {
	c.Flags().StringVar(&c.dir, "data", config.Default().Data, "data directory")
	c.answer = func([]string) (answer, error) {
		there, err := filepath.Glob(filepath.Join(c.keys(), "*.pem"))
		if err != nil {
			return answer{}, usage(err)
		}
		if len(there) > 0 {
			return answer{}, fmt.Errorf("%s has keys already, and none is overwritten: name another data directory with --data", c.keys())
		}
		keys, err := keydir.Create(c.keys())
		if err != nil {
			return answer{}, err
		}
		list := keyList{Origin: state.Origin(keys[intents.RoleRoot].Public()), Keys: rowsOf(keys.KeySet().Keys, func(string) bool { return true })}
		fmt.Fprintf(c.std.Err, "keys made in %s; the first start needs all of them. Then take the root key offline (writ admin keys root move)\n", c.keys())
		return list.answer(), nil
	}
}

func keysList(c *command) {
	c.operatorFlags()
	c.answer = func([]string) (answer, error) {
		set, err := c.keySet()
		if err != nil {
			return answer{}, err
		}
		held, err := keydir.LoadAll(c.keys())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return answer{}, malformed(err)
		}
		here := func(kid string) bool { _, ok := held[kid]; return ok }
		return keyList{set.Origin, set.Version, rowsOf(set.Keys, here)}.answer(), nil
	}
}

// keySet is the key set in force: of the record, or of the writ whose URL is given.
func (c *command) keySet() (intents.JWKS, error) {
	if targetOf(c.Command).explicitURL() {
		return c.keysInForce()
	}
	d, err := c.rebuildState()
	if err != nil {
		return intents.JWKS{}, err
	}
	return d.JWKS(), nil
}

// keysInForce is the key set that a writ publishes.
func (c *command) keysInForce() (set intents.JWKS, err error) {
	if err := (client.Client{URL: c.url}).Get(c.Context(), "/.well-known/jwks.json", &set); err != nil {
		return set, err
	}
	if _, err := set.Admit(); err != nil || set.Origin == "" {
		return set, malformed(fmt.Errorf("%s does not serve the key set of a writ as /.well-known/jwks.json", c.url))
	}
	return set, nil
}

func keysExport(c *command) {
	var trust bool
	c.answer = func([]string) (answer, error) {
		if trust {
			return c.trust()
		}
		set, err := c.keysInForce()
		if err != nil {
			return answer{}, err
		}
		return document(set)
	}
	c.operatorFlags()
	c.Flags().BoolVar(&trust, "trust", false, "print the trust file {origin, root}")
}

// writeNew writes a file that must not exist, readable only by its owner.
func writeNew(path string, content []byte) error {
	err := durable.New(path, content)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already, and it is not overwritten", path)
	}
	return err
}

// preparedKeySet is a key set that waits for the root's signature, with the version before it.
// The holder of the root key verifies both without any other source.
type preparedKeySet struct {
	Current string         `json:"current"` // JWS by the root
	Next    intents.KeySet `json:"next"`
}

// prepare changes a copy of the keys in force, and returns the keys in force, too.
func prepare(set intents.JWKS, change func(keys []intents.JWK) ([]intents.JWK, error)) (p preparedKeySet, current intents.KeySet, err error) {
	if err := intents.PeekClaims(set.KeySet, &current); err != nil {
		return p, current, malformed(fmt.Errorf("the router does not publish the signed key set: %w", err))
	}
	keys, err := change(slices.Clone(current.Keys))
	p = preparedKeySet{set.KeySet, intents.KeySet{Version: current.Version + 1, Prev: intents.Digest([]byte(set.KeySet)), Keys: keys}}
	return p, current, err
}

// sign signs the next version. It trusts neither the router nor another machine: the
// root itself must have signed the version before.
func (p preparedKeySet) sign(root intents.Signer) (token string, before intents.KeySet, err error) {
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
		err = fmt.Errorf("the root key is not in %s: name its file with --root; or write the key set with --prepare FILE and sign it on the machine with the root key (writ admin keys root sign)", path)
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
	c.answer = func(args []string) (answer, error) {
		from := keydir.RootFile(c.keys())
		root, err := intents.ReadKey(from, intents.RoleRoot)
		if err != nil {
			return answer{}, malformed(err)
		}
		if err := c.archive(func(a *datadir.Archive) error {
			if a.Root.KID != root.KID {
				return fmt.Errorf("%s is not the root key of the log in %s", from, c.dir)
			}
			return nil
		}); err != nil {
			return answer{}, fmt.Errorf("the first start needs the root key: %w", err)
		}
		if err := intents.WriteKey(args[0], root); err != nil {
			return answer{}, fmt.Errorf("the root key was not moved: %w", err)
		}
		again, err := intents.ReadKey(args[0], intents.RoleRoot)
		if err == nil && again.KID != root.KID {
			err = errors.New("it has another key")
		}
		if err != nil {
			return answer{}, fmt.Errorf("%s cannot be read back, so nothing was removed: %w", args[0], err)
		}
		note := fmt.Sprintf("the root key is now only in %s; keep a second copy: without it no key can ever be replaced\n", args[0])
		return answer{data: map[string]string{"file": args[0]}, note: note}, os.Remove(from)
	}
	c.dataFlag()
}

func rootSign(c *command) {
	var path string
	c.answer = func(args []string) (answer, error) {
		raw, err := readFile(args[0])
		if err != nil {
			return answer{}, err
		}
		var p preparedKeySet
		if err := intents.UnmarshalStrict(raw, &p); err != nil {
			return answer{}, malformed(fmt.Errorf("%s: not what --prepare writes: %v", args[0], err))
		}
		root, err := c.readRoot(path)
		if err != nil {
			return answer{}, err
		}
		token, before, err := p.sign(root)
		if err != nil {
			return answer{}, err
		}
		a := answer{data: map[string]string{"keyset": token}, text: token + "\n"}
		changes := put{Changes: keyRowsOf(before.Keys).changed(keyRowsOf(p.Next.Keys))}
		a.note = fmt.Sprintf("%s, version %d:\n%s", state.Origin(root.Public()), p.Next.Version, changes.text())
		return a, nil
	}
	c.rootFlag(&path)
	c.dataFlag()
	c.stands = nil // there is none where the root key is offline
}
