package cli

import (
	"cmp"
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
	b, state, context := s.Payload, "", []byte(nil)
	if s.Expired {
		state = " (expired)"
	}
	if b.Context != nil {
		context, _ = json.Marshal(b.Context) // texts and numbers always can
	}
	lines := [][2]string{
		{"intent_id", cmp.Or(s.IntentID, "none: not sealed")},
		{"signed by", s.KID},
		{"header", string(s.Header)},
		{"fingerprint", s.Fingerprint},
		{"type", b.Intent.Type},
		{"args", string(b.Intent.Args)},
		{"actor", b.Actor.UserID + "@" + b.Actor.Tenant},
		{"issued", b.Constraints.IssuedAt},
		{"expires", s.ExpiresAt + state},
		{"audience", b.Constraints.Audience},
		{"key", b.Constraints.IdempotencyKey},
		{"declares", strings.Join(b.Constraints.Capabilities, " ")},
		{"context", string(context)},
	}
	if g := s.Grant; g != nil {
		lines = append(lines, [2]string{"grant", fmt.Sprintf("%s@%s as %s, session %s, turn %s, until %s", g.Subject, g.Tenant, strings.Join(g.Roles, " "), g.Session, g.Turn,
			time.Unix(g.Expires, 0).UTC().Format(time.RFC3339))}, [2]string{"grant for", g.For})
	}
	var out strings.Builder
	for _, x := range lines {
		if x[1] != "" {
			fmt.Fprintf(&out, "%s  %s\n", p.bold(fmt.Sprintf("%-12s", x[0])), printable(x[1]))
		}
	}
	return out.String()
}
