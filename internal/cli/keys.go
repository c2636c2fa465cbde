package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
)

func keysCommand(std IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Make, list, rotate and revoke keys", Args: oneOfThese, RunE: help,
		Long: "Change which keys are in force: each change is a new version of the key set, signed\n" +
			"by the root key and put in force by an operator's order (docs/keys.md).",
	}
	cmd.AddCommand(keysInit(std), keysList(std), keysRotate(std), keysAdd(std), keysRevoke(std), keysPut(std), keysExport(std), keysRoot(std))
	return cmd
}

// keyRow is one key of `writ keys list` and `writ keys init`; scripts rely on the shape.
type keyRow struct {
	KID      string       `json:"kid"`
	Role     intents.Role `json:"role"`
	Subject  string       `json:"subject,omitempty"`
	Tenant   string       `json:"tenant,omitempty"`
	NotAfter string       `json:"not_after,omitempty"`
	Revoked  bool         `json:"revoked"`
	Here     bool         `json:"here"` // the private half is in the data directory
}

type keyList struct {
	Origin  string   `json:"origin"`
	Version int64    `json:"version"`
	Keys    []keyRow `json:"keys"`
}

func (l keyList) answer() answer {
	return answer{data: l, note: fmt.Sprintf("%s, version %d\n", l.Origin, l.Version), text: aligned(func(t io.Writer) {
		fmt.Fprintln(t, "KID\tROLE\tSUBJECT\tNOT AFTER\tREVOKED\tHERE")
		for _, k := range l.Keys {
			who := k.Subject
			if k.Tenant != "" {
				who += "@" + k.Tenant
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", k.KID, k.Role, cmp.Or(who, "-"), cmp.Or(k.NotAfter, "-"), yes(k.Revoked), yes(k.Here))
		}
	})}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

func rowsOf(keys []intents.JWK, here func(kid string) bool) []keyRow {
	rows := make([]keyRow, 0, len(keys))
	for _, j := range keys {
		rows = append(rows, keyRow{j.KID, j.Role, j.Subject, j.Tenant, j.NotAfter, j.Revoked, here(j.KID)})
	}
	return rows
}

func keysInit(std IO) *cobra.Command {
	var f operatorFlags
	cmd := answering(std, &cobra.Command{
		Use: "init", Short: "Make the keys of a new data directory, offline", Args: cobra.NoArgs,
		Long: "Make the keys of a data directory before its first start, each in a file of mode 0600,\n" +
			"and print the origin that the log will have. Nothing is overwritten.",
	}, func(*cobra.Command, []string) (answer, error) {
		there, err := filepath.Glob(filepath.Join(f.keys(), "*.pem"))
		if err != nil {
			return answer{}, usage(err)
		}
		if len(there) > 0 {
			return answer{}, no(fmt.Errorf("%s: there are keys already, and none is overwritten: name another data directory with --data", f.keys()))
		}
		keys, err := keydir.Create(f.keys())
		if err != nil {
			return answer{}, no(err)
		}
		list := keyList{Origin: state.Origin(keys[intents.RoleRoot].Public()), Keys: rowsOf(keys.KeySet().Keys, func(string) bool { return true })}
		fmt.Fprintf(std.Err, "keys made in %s; the first start needs them all, then take the root key offline (writ keys root move)\n", f.keys())
		return list.answer(), nil
	})
	cmd.Flags().StringVar(&f.data, "data", ".writ", "data directory")
	return cmd
}

func keysList(std IO) *cobra.Command {
	var f operatorFlags
	return answering(std, &cobra.Command{
		Use: "list", Short: "List the keys in force and the revoked ones", Args: cobra.NoArgs,
		Long: "List the keys in force and the revoked ones, from the record of the data directory as\n" +
			"all lists are; of a writ that is named by its URL, as that publishes them.",
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		set, err := f.keySet(cmd)
		if err != nil {
			return answer{}, err
		}
		held, err := keydir.LoadAll(f.keys())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return answer{}, malformed(err)
		}
		here := func(kid string) bool { _, ok := held[kid]; return ok }
		return keyList{set.Origin, set.Version, rowsOf(set.Keys, here)}.answer(), nil
	}, f.add)
}

// keySet is the key set in force, of the record or of whoever was named instead.
func (f *operatorFlags) keySet(cmd *cobra.Command) (intents.JWKS, error) {
	if targetOf(cmd).elsewhere() {
		return keysInForce(cmd.Context(), f.url)
	}
	d, err := folded(cmd.Context(), f.data)
	if err != nil {
		return intents.JWKS{}, err
	}
	return d.JWKS(), nil
}

func keysInForce(ctx context.Context, url string) (intents.JWKS, error) {
	var set intents.JWKS
	if err := (client.Client{URL: url}).Get(ctx, "/.well-known/jwks.json", &set); err != nil {
		return set, no(err)
	}
	if _, err := set.Admit(); err != nil || set.Origin == "" {
		return set, malformed(fmt.Errorf("what %s serves as /.well-known/jwks.json is no key set of a writ", url))
	}
	return set, nil
}

func keysExport(std IO) *cobra.Command {
	var f operatorFlags
	var trust bool
	cmd := &cobra.Command{
		Use: "export", Short: "Print the public keys as JWKS, or the trust file for auditors", Args: cobra.NoArgs,
		Long: "Print the keys in force as a JWKS (RFC 7517), for `writ intent verify --keys` and for\n" +
			"services that check tickets. With --trust: root key and origin of the log in the data\n" +
			"directory, which auditors pin over another way than the bundles.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if trust {
				return withArchive(cmd.Context(), f.data, func(a *datadir.Archive) error { return printJSON(std.Out, audit.NewTrust(a.Root)) })
			}
			set, err := keysInForce(cmd.Context(), f.url)
			if err != nil {
				return err
			}
			return printJSON(std.Out, set)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&trust, "trust", false, "print the trust file {origin, root}")
	return cmd
}

// writeNew writes a file that must not be there yet, readable by its owner alone.
func writeNew(path string, content []byte) error {
	err := durable.New(path, content)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: there is such a file, and it is not overwritten", path)
	}
	return err
}

// notAfter is the text of a time in a key set.
func notAfter(t time.Time) string { return t.UTC().Format(time.RFC3339) }
