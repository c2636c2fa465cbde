package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// newTTL is the ttl_sec of an order that is written by hand.
const newTTL = 120

func newCommand(std IO) *cobra.Command {
	var f catalogFlags
	var b intents.Body
	var grant, args, url string
	var c intents.Context
	cmd := &cobra.Command{
		Use: "new TYPE", Short: "Print an order of a type to fill in", Args: cobra.ExactArgs(1),
		Long: "Print an order of a type, not signed: actor and constraints from the flags, arguments\n" +
			"made from the type's schema or given with --args. Pipe it:\n" +
			"  writ intent new plan.list --user ana | writ intent sign --key KEY | writ intent submit",
		RunE: func(cmd *cobra.Command, names []string) error {
			rows, err := f.rows(cmd.Context())
			if err != nil {
				return err
			}
			row, ok := rows[names[0]]
			if !ok {
				return no(fmt.Errorf("%s: no type %q in the catalog%s", intents.UnknownIntent, names[0], meant(names[0], typesIn(rows))))
			}
			if b.Actor.Grant, err = grantText(grant); err != nil {
				return malformed(err)
			}
			if url != "" {
				set, err := keysInForce(cmd, url)
				if err != nil {
					return err
				}
				b.Constraints.Audience = set.Origin
			}
			b.Version, b.Intent.Type, b.Intent.Args = intents.Version, row.Type, json.RawMessage(args)
			if args == "" {
				if b.Intent.Args, err = skeleton(row); err != nil {
					return malformed(err)
				}
			} else if b.Intent.Args, err = canonicalObject(b.Intent.Args); err != nil {
				return &exitError{code: ExitUsage, err: fmt.Errorf("--args: %w", err)}
			}
			b.Constraints.IssuedAt, b.Constraints.Capabilities = intents.FormatTime(time.Now()), []string{row.Capability}
			b.Constraints.TTLSec = min(newTTL, row.TTLSec)
			if c.SessionID != "" || c.TurnID != "" || c.PlanID != "" || c.TaskID != "" || c.Step > 0 || c.Revision > 0 {
				b.Context = &c
			}
			return printJSON(std.Out, b)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&b.Actor.UserID, "user", "local", "for whom: as the grant or the operator's key says")
	cmd.Flags().StringVar(&b.Actor.Tenant, "tenant", "default", "of which tenant")
	cmd.Flags().StringVar(&grant, "grant", "", "file with the grant; operators have none")
	cmd.Flags().StringVar(&args, "args", "", "arguments, a JSON object")
	cmd.Flags().StringVar(&b.Constraints.Audience, "audience", "", "log origin (default: asked of --url; or filled in by sign)")
	cmd.Flags().StringVar(&url, "url", "", "router whose log it is for")
	cmd.Flags().StringVar(&c.SessionID, "session", "", "session of the grant")
	cmd.Flags().StringVar(&c.TurnID, "turn", "", "turn of the grant")
	cmd.Flags().StringVar(&c.PlanID, "plan", "", "plan")
	cmd.Flags().IntVar(&c.Revision, "revision", 0, "revision of the plan")
	cmd.Flags().IntVar(&c.Step, "step", 0, "step of the plan")
	cmd.Flags().StringVar(&c.TaskID, "task", "", "task")
	return cmd
}

func typesIn(rows map[string]typeRow) []string {
	out := make([]string, 0, len(rows))
	for typ := range rows {
		out = append(out, typ)
	}
	return out
}

// grantText reads a grant from a file.
func grantText(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the user names the file
	return strings.TrimSpace(string(raw)), err
}

func signCommand(std IO) *cobra.Command {
	var key, audience, url string
	var keepTime bool
	cmd := &cobra.Command{
		Use: "sign [FILE|-] --key FILE", Short: "Seal an order with a key", Args: cobra.MaximumNArgs(1),
		Long: "Seal an order: issued_at becomes the time of signing, an idempotency_key that is missing\n" +
			"becomes the order's fingerprint (a random one for reads and operators' orders), and an\n" +
			"audience that is missing is asked of --url. What it prints is what is submitted.",
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := input(std, args)
			if err != nil {
				return malformed(err)
			}
			b, err := readOrder(raw)
			if err != nil {
				return malformed(err)
			}
			signer, err := intents.ReadKey(key, "")
			if err != nil {
				return malformed(err)
			}
			if !keepTime {
				b.Constraints.IssuedAt = intents.FormatTime(time.Now())
			}
			if audience != "" {
				b.Constraints.Audience = audience
			}
			if b.Constraints.Audience == "" && url != "" {
				set, err := keysInForce(cmd, url)
				if err != nil {
					return err
				}
				b.Constraints.Audience = set.Origin
			}
			if b.Constraints.IdempotencyKey == "" {
				if b.Constraints.IdempotencyKey, err = keyOf(b); err != nil {
					return no(err)
				}
			}
			sealed, _, err := intents.Seal(signer, b)
			if err != nil {
				return no(fmt.Errorf("%w: see writ intent lint", err))
			}
			_, err = fmt.Fprintf(std.Out, "%s\n", sealed)
			return err
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "private key file, PKCS #8 PEM, mode 0600")
	cmd.Flags().StringVar(&audience, "audience", "", "log origin")
	cmd.Flags().StringVar(&url, "url", "", "router to ask for the log origin, if the order names none")
	cmd.Flags().BoolVar(&keepTime, "keep-time", false, "leave issued_at as it is")
	_ = cmd.MarkFlagRequired("key") // the flag exists
	return cmd
}

// keyOf is the idempotency key of an order that has none (DESIGN §3).
func keyOf(b intents.Body) (string, error) {
	row, known := catalog.Lookup(b.Intent.Type)
	if b.Actor.Grant == "" || !known || row.Effect == catalog.Pure || row.RandomKey {
		return randomKey(), nil
	}
	args, err := canonicalObject(b.Intent.Args)
	if err != nil {
		return "", err
	}
	var c intents.Context
	if b.Context != nil {
		c = *b.Context
	}
	return intents.Fingerprint(intents.Intent{Type: b.Intent.Type, Args: args}, b.Actor.UserID, c), nil
}

// readOrder reads an order that is not sealed, or one that is, without its sig.
func readOrder(raw []byte) (intents.Body, error) {
	var doc struct {
		intents.Body
		Sig json.RawMessage `json:"sig"`
	}
	canonical, err := intents.Canonical(bytes.TrimSpace(raw))
	if err != nil {
		return doc.Body, fmt.Errorf("%w: see writ intent lint", err)
	}
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return doc.Body, fmt.Errorf("not an order (%v): see writ intent lint", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return doc.Body, errors.New("more than one order")
	}
	return doc.Body, nil
}
