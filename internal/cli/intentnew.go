package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
)

// newTTL is the ttl_sec of an intent that is written by hand.
const newTTL = 120

func intentNew(c *command) {
	n := newIntent{command: c}
	n.catalog.add(c)
	c.personFlags()
	c.Flags().StringVar(&n.actor.UserID, "user", "local", "user of the intent, as in the grant or the operator's key")
	c.Flags().StringVar(&n.actor.Tenant, "tenant", "default", "tenant of the intent")
	c.Flags().BoolVar(&n.operator, "operator", false, "an operator will sign it: no grant")
	c.Flags().StringVar(&n.args, "args", "", "arguments, a JSON object")
	c.Flags().StringVar(&n.context.SessionID, "session", "", "session of the grant")
	c.answer = func(names []string) (answer, error) {
		row, err := n.catalog.row(c.Context(), names[0], c.url)
		if err != nil {
			return answer{}, err
		}
		b, err := n.intent(row)
		if err != nil {
			return answer{}, err
		}
		return document(b)
	}
}

// newIntent is the flags of `writ intent new`.
type newIntent struct {
	*command
	catalog  catalogFlags
	args     string
	operator bool
	actor    intents.Actor
	audience string // of the grant, or of the keys in force; else sign fills it in
	context  intents.Context
}

func (n *newIntent) intent(row catalog.Row) (b intents.Body, err error) {
	b.Version, b.Intent.Type = intents.Version, row.Type
	if n.args == "" {
		if b.Intent.Args, err = exampleArgs(row); err != nil {
			return b, malformed(err)
		}
	} else if b.Intent.Args, err = canonicalObject(json.RawMessage(n.args)); err != nil {
		return b, usage(fmt.Errorf("--args: %w", err))
	}
	if err := n.actFor(row); err != nil {
		return b, err
	}
	b.Actor, b.Constraints.Audience = n.actor, n.audience
	b.Constraints.IssuedAt, b.Constraints.Capabilities = intents.FormatTime(time.Now()), row.CapabilitiesFor(b.Intent.Args, b.Actor.UserID)
	b.Constraints.TTLSec = min(newTTL, int(row.TTL().Seconds()))
	if n.context.SessionID != "" || n.context.TurnID != "" {
		b.Context = &n.context
	}
	return b, nil
}

// exampleArgs are arguments that a row's schema accepts. The author fills in meaningful
// values.
func exampleArgs(row catalog.Row) (json.RawMessage, error) {
	s, err := row.ArgsSchema()
	if err != nil {
		return nil, err
	}
	return json.Marshal(s.Part("").Example())
}

// actFor sets actor and audience: from a new grant, or from the flags.
func (n *newIntent) actFor(row catalog.Row) (err error) {
	asked := n.Flags().Changed("url")
	ours := func(r intents.Role) bool { return r != intents.RoleOperator }
	if !n.operator && slices.ContainsFunc(row.Signers, ours) {
		err := n.takeGrant()
		if err != nil && (asked || !errors.Is(err, errNoGrant)) {
			return err
		}
		if err != nil {
			fmt.Fprintf(n.std.Err, "without a grant, which %s needs: %v\n", row.Type, err)
		}
	}
	if n.audience != "" || n.url == "" {
		return nil
	}
	set, err := n.keysInForce()
	if err != nil && asked {
		return err
	}
	n.audience = set.Origin
	return nil
}

// errNoGrant reports that no router answers, or that there is no API key.
var errNoGrant = errors.New("none is available")

// takeGrant gets a grant with the API key, and copies its claims into the intent.
func (n *newIntent) takeGrant() error {
	if n.key == "" {
		return fmt.Errorf("%w: no API key (--key, WRIT_API_KEY, --data)", errNoGrant)
	}
	ask := map[string]string{}
	for flag, member := range map[string]string{"user": "user_id", "tenant": "tenant_id", "session": "session_id"} {
		if f := n.Flags().Lookup(flag); f.Changed {
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
	err := client.Client{URL: n.url, Key: n.key}.Post(n.Context(), "/v1/grants", ask, &got)
	if errors.Is(err, client.ErrNoAnswer) {
		return fmt.Errorf("%w: %w", errNoGrant, err)
	}
	if err != nil {
		return err
	}
	n.actor = intents.Actor{UserID: got.User, Tenant: got.Tenant, Grant: got.Grant}
	n.context.SessionID, n.context.TurnID, n.audience = got.Session, got.Turn, got.Origin
	return nil
}

func intentSign(c *command) {
	var types catalogFlags
	c.signerFlag("private key file, PKCS #8 PEM, mode 0600")
	types.add(c)
	c.placeFlags()
	c.jsonFlag()
	raw := c.Flags().Bool("raw", false, "sign as ed25519:<base64>, with a key of writ admin keys new --raw (default: as sig has it, else a JWS)")
	c.mustGive("signer")
	c.run = func(args []string) error {
		text, err := c.input(args)
		if err != nil {
			return err
		}
		b, printed, err := readIntent(text)
		if err != nil {
			return malformed(err)
		}
		signer, err := c.signingKey("")
		if err != nil {
			return err
		}
		signer.Raw = *raw || printed
		b.Constraints.IssuedAt = intents.FormatTime(time.Now())
		if b.Constraints.Audience == "" {
			set, err := c.keysInForce()
			if err != nil {
				return err
			}
			b.Constraints.Audience = set.Origin
		}
		if b.Constraints.IdempotencyKey == "" {
			row, err := types.row(c.Context(), b.Intent.Type, c.url)
			if err != nil {
				return err
			}
			if b.Constraints.IdempotencyKey, err = keyOf(b, row); err != nil {
				return err
			}
		}
		signed, _, err := intents.Sign(signer, b)
		if err != nil {
			return fmt.Errorf("%w: see writ intent lint", err)
		}
		_, err = fmt.Fprintf(c.std.Out, "%s\n", signed)
		return err
	}
}

// keyOf is the idempotency key of an intent that has none.
func keyOf(b intents.Body, row catalog.Row) (string, error) {
	if b.Actor.Grant == "" || row.Effect == catalog.Pure || row.RandomKey {
		return catalog.RandomKey(), nil
	}
	args, err := canonicalObject(b.Intent.Args)
	if err != nil {
		return "", err
	}
	var c intents.Context
	if b.Context != nil {
		c = *b.Context
	}
	return intents.Fingerprint(intents.Spec{Type: b.Intent.Type, Args: args}, b.Actor.UserID, c), nil
}

// readIntent reads an unsigned intent, or a signed one without its sig, and reports whether the sig
// has the form of a raw signature.
func readIntent(raw []byte) (b intents.Body, rawly bool, err error) {
	var doc struct {
		intents.Body
		Sig json.RawMessage `json:"sig"`
	}
	canonical, err := intents.Canonical(bytes.TrimSpace(raw))
	if err != nil {
		return b, false, fmt.Errorf("%w: see writ intent lint", err)
	}
	if err := intents.UnmarshalStrict(canonical, &doc); err != nil {
		return b, false, fmt.Errorf("not an intent (%v): see writ intent lint", err)
	}
	return doc.Body, bytes.HasPrefix(doc.Sig, []byte(`"`+intents.RawPrefix)), nil
}

func intentProduce(c *command) {
	c.personFlags()
	c.jsonFlag()
	c.run = func(args []string) error {
		var made struct {
			Envelope json.RawMessage `json:"envelope"`
			Reason   string          `json:"reason"`
		}
		if err := c.post("/v1/produce", map[string]string{"request": strings.Join(args, " ")}, &made); err != nil {
			return err
		}
		if made.Envelope == nil {
			return errors.New(printable(made.Reason))
		}
		_, err := fmt.Fprintf(c.std.Out, "%s\n", bytes.TrimSpace(made.Envelope))
		return err
	}
}
