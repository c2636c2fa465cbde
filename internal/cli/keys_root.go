package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
)

// prepared is a key set that waits for the root's signature, with the version
// that it follows: whoever holds the root key verifies that by itself.
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

// sign gives the next version, signed. Nothing of what the router or another
// machine said is believed: the version before must be the root's own.
func (p prepared) sign(root intents.Signer) (token string, before intents.KeySet, err error) {
	before, _, err = intents.OpenKeySet(p.Current, root.Public())
	if err != nil {
		return "", before, no(fmt.Errorf("the key set in force is not signed by this root key (%s): %w", root.KID, err))
	}
	if p.Next.Version != before.Version+1 || p.Next.Prev != intents.Digest([]byte(p.Current)) {
		return "", before, no(errors.New("the prepared key set does not follow the one that it names as current: prepare it anew"))
	}
	token, err = intents.SignKeySet(root, p.Next)
	if err != nil {
		return "", before, no(err)
	}
	return token, before, nil
}

// changes are what a version changes, a line each: what its signer looks at.
func changes(before, next intents.KeySet) []string {
	var out []string
	who := func(j intents.JWK) string {
		s := string(j.Role) + " " + j.KID
		if j.Subject != "" {
			s += " (" + j.Subject + "@" + j.Tenant + ")"
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
			out = append(out, "put back in force, though revoked before: "+who(j))
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

// readRoot reads the root key, from where it is named or from the data directory.
func readRoot(path string, f *operatorFlags) (intents.Signer, error) {
	if path == "" {
		path = keydir.RootFile(f.keys())
	}
	root, err := intents.ReadKey(path, intents.RoleRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return root, malformed(fmt.Errorf("the root key is not in %s: name its file with --root; or write the key set with --prepare FILE and sign it where the root key is (writ keys root sign)", path))
	}
	if err != nil {
		return root, malformed(err)
	}
	return root, nil
}

func keysRoot(std IO) *cobra.Command {
	return group("root", "Show the root key, take it offline, sign a key set with it", rootShow(std), rootMove(std), rootSign(std))
}

func rootShow(std IO) *cobra.Command {
	var f operatorFlags
	return answering(std, &cobra.Command{
		Use: "show", Short: "Print the thumbprint of the root key and whether its file is here", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		res := struct {
			Origin     string `json:"origin"`
			Thumbprint string `json:"thumbprint"`
			File       string `json:"file,omitempty"` // of the private key; absent: it is offline
		}{}
		path := keydir.RootFile(f.keys())
		root, err := intents.ReadKey(path, intents.RoleRoot)
		switch {
		case err == nil:
			res.Thumbprint, res.File = root.KID, path
		case errors.Is(err, fs.ErrNotExist):
			if err := withArchive(cmd.Context(), f.data, func(a *datadir.Archive) error { res.Thumbprint = a.Root.KID; return nil }); err != nil {
				return answer{}, err
			}
		default:
			return answer{}, malformed(err)
		}
		res.Origin = "writ/" + res.Thumbprint
		return answer{data: res, text: res.Thumbprint + " " + cmp.Or(res.File, "offline") + "\n"}, nil
	}, dataFlag(&f.data))
}

func rootMove(std IO) *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{
		Use: "move FILE", Short: "Take the root key out of the data directory", Args: cobra.ExactArgs(1),
		Long: "Copy the root key to FILE (a medium that goes offline), read the copy back, and remove\n" +
			"the key from the data directory. A running writ does not need it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			from := keydir.RootFile(f.keys())
			root, err := intents.ReadKey(from, intents.RoleRoot)
			if err != nil {
				return malformed(err)
			}
			if err := withArchive(cmd.Context(), f.data, func(a *datadir.Archive) error {
				if a.Root.KID != root.KID {
					return no(fmt.Errorf("%s is not the root key of the log in %s", from, f.data))
				}
				return nil
			}); err != nil {
				return fmt.Errorf("the first start needs the root key: %w", err)
			}
			if err := intents.WriteKey(args[0], root); err != nil {
				return no(err)
			}
			again, err := intents.ReadKey(args[0], intents.RoleRoot)
			if err != nil || again.KID != root.KID {
				return no(fmt.Errorf("%s does not read back, so nothing was removed: %w", args[0], err))
			}
			if err := os.Remove(from); err != nil {
				return no(err)
			}
			fmt.Fprintf(std.Err, "the root key is in %s and nowhere else; keep a second copy, without it no key can ever be replaced\n", args[0])
			return nil
		},
	}
	dataFlag(&f.data)(cmd)
	return cmd
}

func rootSign(std IO) *cobra.Command {
	var f operatorFlags
	var path, out string
	cmd := &cobra.Command{
		Use: "sign FILE", Short: "Sign a prepared key set, offline", Args: cobra.ExactArgs(1),
		Long: "Sign what `--prepare FILE` wrote elsewhere. The changes are printed first, to be looked\n" +
			"at; the version before must be signed by this root key. Put the result in force with\n" +
			"`writ keys put`.",
		RunE: func(_ *cobra.Command, args []string) error {
			raw, err := os.ReadFile(args[0])
			if err != nil {
				return malformed(err)
			}
			var p prepared
			dec := json.NewDecoder(bytes.NewReader(raw))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&p); err != nil {
				return malformed(fmt.Errorf("%s: not what --prepare writes: %v", args[0], err))
			}
			root, err := readRoot(path, &f)
			if err != nil {
				return err
			}
			token, before, err := p.sign(root)
			if err != nil {
				return err
			}
			fmt.Fprintf(std.Err, "%s, version %d:\n", state.Origin(root.Public()), p.Next.Version)
			for _, line := range changes(before, p.Next) {
				fmt.Fprintln(std.Err, " ", line)
			}
			if out == "" {
				_, err = fmt.Fprintln(std.Out, token)
				return err
			}
			if err := writeNew(out, []byte(token+"\n")); err != nil {
				return no(err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "root", "", "root key file (default: the one of the data directory)")
	cmd.Flags().StringVarP(&out, "out", "o", "", "file; without it standard output")
	dataFlag(&f.data)(cmd)
	return cmd
}
