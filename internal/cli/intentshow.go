package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/intents"
)

// shownOrder is the parts of an order. Scripts rely on the shape. Nothing is verified.
type shownOrder struct {
	IntentID    string          `json:"intent_id,omitempty"` // absent: not sealed
	KID         string          `json:"kid,omitempty"`
	Header      json.RawMessage `json:"header,omitempty"`
	Fingerprint string          `json:"fingerprint"`
	ExpiresAt   string          `json:"expires_at,omitempty"` // for acceptance, leeway not counted
	Expired     bool            `json:"expired"`
	Payload     intents.Body    `json:"payload"`
	Grant       *intents.Grant  `json:"grant,omitempty"` // its claims
}

func intentShow(c *command) {
	c.answer = func(args []string) (answer, error) {
		raw, err := c.input(args)
		if err != nil {
			return answer{}, err
		}
		s, err := takeApart(raw, time.Now())
		if err != nil {
			return answer{}, malformed(err)
		}
		return answer{data: s, text: s.text(painter(c.std, c.std.Out))}, nil
	}
}

func takeApart(raw []byte, now time.Time) (shownOrder, error) {
	var s shownOrder
	var err error
	if s.Payload, err = readOrder(raw); err != nil {
		return s, err
	}
	var sealed struct {
		Sig string `json:"sig"`
	}
	_ = json.Unmarshal(raw, &sealed) // read above; a sig of another type is none
	if sealed.Sig != "" {
		u, err := intents.Parse(raw)
		if err != nil {
			return s, fmt.Errorf("%w: see writ intent lint", err)
		}
		header, _, _ := strings.Cut(sealed.Sig, "..")
		s.IntentID, s.KID = u.ID(), u.KID()
		if s.Header, err = base64.RawURLEncoding.DecodeString(header); err != nil {
			return s, errors.New("sig is not base64url")
		}
	}
	b := s.Payload
	var c intents.Context
	if b.Context != nil {
		c = *b.Context
	}
	args, err := canonicalObject(b.Intent.Args)
	if err != nil {
		return s, fmt.Errorf("args: %w", err)
	}
	s.Fingerprint = intents.Fingerprint(intents.Intent{Type: b.Intent.Type, Args: args}, b.Actor.UserID, c)
	if at, err := time.Parse(time.RFC3339Nano, b.Constraints.IssuedAt); err == nil {
		end := at.Add(time.Duration(b.Constraints.TTLSec) * time.Second)
		s.ExpiresAt, s.Expired = intents.FormatTime(end), now.After(end.Add(intents.Leeway))
	}
	if b.Actor.Grant != "" {
		s.Grant = &intents.Grant{}
		if err := intents.PeekClaims(b.Actor.Grant, s.Grant); err != nil {
			return s, fmt.Errorf("grant: %w", err)
		}
	}
	return s, nil
}

func (s shownOrder) text(p paint) string {
	var out strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%s  %s\n", p.bold(fmt.Sprintf("%-12s", name)), printable(value))
		}
	}
	b := s.Payload
	line("intent_id", s.IntentID)
	if s.IntentID == "" {
		line("intent_id", "none: not sealed")
	}
	line("signed by", s.KID)
	line("header", string(s.Header))
	line("fingerprint", s.Fingerprint)
	line("type", b.Intent.Type)
	line("args", string(b.Intent.Args))
	line("actor", b.Actor.UserID+"@"+b.Actor.Tenant)
	line("issued", b.Constraints.IssuedAt)
	state := ""
	if s.Expired {
		state = " (expired)"
	}
	line("expires", s.ExpiresAt+state)
	line("audience", b.Constraints.Audience)
	line("key", b.Constraints.IdempotencyKey)
	line("declares", strings.Join(b.Constraints.Capabilities, " "))
	if b.Context != nil {
		if raw, err := json.Marshal(b.Context); err == nil {
			line("context", string(raw))
		}
	}
	if g := s.Grant; g != nil {
		line("grant", fmt.Sprintf("%s@%s as %s, session %s, turn %s, until %s", g.Subject, g.Tenant, strings.Join(g.Roles, " "), g.Session, g.Turn, time.Unix(g.Expires, 0).UTC().Format(time.RFC3339)))
		line("grant for", g.For)
	}
	return out.String()
}
