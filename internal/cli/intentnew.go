package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
)

// newTTL is the ttl_sec of an order that is written by hand.
const newTTL = 120

func newCommand(std IO) *cobra.Command {
	var n newOrder
	cmd := &cobra.Command{
		Use: "new TYPE", Short: "Print an order of a type to fill in", Args: cobra.ExactArgs(1), ValidArgsFunction: intentTypes(std),
		Long: "Print an order of a type, not signed: arguments made from the type's schema or given with\n" +
			"--args, the rest from the flags. Where the type needs a grant, and there is an API key, it\n" +
			"takes one; actor, session, turn and audience are then the grant's. Pipe it:\n" +
			"  writ intent new plan.list | writ intent sign --key .writ/keys/gateway.pem | writ intent submit",
		RunE: func(cmd *cobra.Command, names []string) error {
			row, err := n.catalog.row(cmd.Context(), names[0], n.url)
			if err != nil {
				return err
			}
			b, err := n.order(cmd, std, row)
			if err != nil {
				return err
			}
			return printJSON(std.Out, b)
		},
	}
	n.add(cmd)
	return cmd
}

// newOrder is what `writ intent new` is told.
type newOrder struct {
	catalog        catalogFlags
	url, data, key string
	grant, args    string
	operator       bool
	actor          intents.Actor
	audience       string
	at             intents.Context
}

func (n *newOrder) add(cmd *cobra.Command) {
	n.catalog.add(cmd)
	targetFlags(cmd, &n.url, &n.data, &n.key)
	cmd.Flags().StringVar(&n.actor.UserID, "user", "local", "for whom: as the grant or the operator's key says")
	cmd.Flags().StringVar(&n.actor.Tenant, "tenant", "default", "of which tenant")
	cmd.Flags().StringVar(&n.grant, "grant", "", "file with the grant (default: one for the API key)")
	cmd.Flags().BoolVar(&n.operator, "operator", false, "an operator signs it: no grant")
	cmd.Flags().StringVar(&n.args, "args", "", "arguments, a JSON object")
	cmd.Flags().StringVar(&n.audience, "audience", "", "log origin (default: the grant's, or asked of --url, or filled in by sign)")
	cmd.Flags().StringVar(&n.at.SessionID, "session", "", "session of the grant")
	cmd.Flags().StringVar(&n.at.TurnID, "turn", "", "turn of the grant")
	cmd.Flags().StringVar(&n.at.PlanID, "plan", "", "plan")
	cmd.Flags().IntVar(&n.at.Revision, "revision", 0, "revision of the plan")
	cmd.Flags().IntVar(&n.at.Step, "step", 0, "step of the plan")
	cmd.Flags().StringVar(&n.at.TaskID, "task", "", "task")
}

func (n *newOrder) order(cmd *cobra.Command, std IO, row typeRow) (b intents.Body, err error) {
	b.Version, b.Intent.Type = intents.Version, row.Type
	if n.args == "" {
		if b.Intent.Args, err = skeleton(row); err != nil {
			return b, malformed(err)
		}
	} else if b.Intent.Args, err = canonicalObject(json.RawMessage(n.args)); err != nil {
		return b, usage(fmt.Errorf("--args: %w", err))
	}
	if err := n.actFor(cmd, std, row); err != nil {
		return b, err
	}
	b.Actor, b.Constraints.Audience = n.actor, n.audience
	b.Constraints.IssuedAt, b.Constraints.Capabilities = intents.FormatTime(time.Now()), []string{row.Capability}
	b.Constraints.TTLSec = min(newTTL, row.TTLSec)
	if c := n.at; c.SessionID != "" || c.TurnID != "" || c.PlanID != "" || c.TaskID != "" || c.Step > 0 || c.Revision > 0 {
		b.Context = &c
	}
	return b, nil
}

// actFor settles actor and audience: by the grant of a file, by one that is taken
// now, or as the flags say.
func (n *newOrder) actFor(cmd *cobra.Command, std IO, row typeRow) (err error) {
	asked := cmd.Flags().Changed("url")
	if n.actor.Grant, err = grantText(n.grant); err != nil {
		return malformed(err)
	}
	ours := func(r intents.Role) bool { return r != intents.RoleOperator }
	if n.actor.Grant == "" && !n.operator && slices.ContainsFunc(row.Signers, ours) {
		err := n.takeGrant(cmd)
		if err != nil && (asked || !errors.Is(err, errNoGrant)) {
			return err
		}
		if err != nil {
			fmt.Fprintf(std.Err, "without a grant, which %s needs: %v\n", row.Type, err)
		}
	}
	if n.audience != "" || n.url == "" {
		return nil
	}
	set, err := keysInForce(cmd.Context(), n.url)
	if err != nil && asked {
		return err
	}
	n.audience = set.Origin
	return nil
}

// errNoGrant is that there is nobody to take a grant from, or nothing to show.
var errNoGrant = errors.New("none can be taken")

// takeGrant takes a grant with the API key, and puts what it says into the order.
func (n *newOrder) takeGrant(cmd *cobra.Command) error {
	if n.key == "" {
		return fmt.Errorf("%w: no API key (--key, WRIT_API_KEY, --data)", errNoGrant)
	}
	ask := map[string]string{}
	for flag, member := range map[string]string{"user": "user_id", "tenant": "tenant_id", "session": "session_id"} {
		if f := cmd.Flags().Lookup(flag); f.Changed {
			ask[member] = f.Value.String()
		}
	}
	var got struct {
		Grant   string `json:"grant"`
		Origin  string `json:"origin"`
		Tenant  string `json:"tenant_id"`
		User    string `json:"user_id"`
		Session string `json:"session_id"`
		Turn    string `json:"turn_id"`
	}
	err := client.Client{URL: n.url, Key: n.key}.Post(cmd.Context(), "/v1/grants", ask, &got)
	if errors.Is(err, client.ErrNoAnswer) {
		return no(fmt.Errorf("%w: %w", errNoGrant, err))
	}
	if err != nil {
		return no(err)
	}
	n.actor = intents.Actor{UserID: got.User, Tenant: got.Tenant, Grant: got.Grant}
	n.at.SessionID, n.at.TurnID = got.Session, got.Turn
	if n.audience == "" {
		n.audience = got.Origin
	}
	return nil
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
	var key, audience, url, data string
	var keepTime bool
	var types catalogFlags
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
			if b.Constraints.Audience == "" {
				set, err := keysInForce(cmd.Context(), url)
				if err != nil {
					return err
				}
				b.Constraints.Audience = set.Origin
			}
			if b.Constraints.IdempotencyKey == "" {
				row, err := types.row(cmd.Context(), b.Intent.Type, url)
				if err != nil {
					return err
				}
				if b.Constraints.IdempotencyKey, err = keyOf(b, row); err != nil {
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
	types.add(cmd)
	placeFlags(cmd, &url, &data)
	cmd.Flags().BoolVar(&keepTime, "keep-time", false, "leave issued_at as it is")
	mustGive(cmd, "key")
	return cmd
}

// keyOf is the idempotency key of an order that has none.
func keyOf(b intents.Body, row typeRow) (string, error) {
	if b.Actor.Grant == "" || row.Effect == catalog.Pure || row.RandomKey {
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
