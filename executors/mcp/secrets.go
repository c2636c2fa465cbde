package mcp

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// shortestSecret is how long a secret must be to be hidden: shorter ones would stand in
// ordinary words.
const shortestSecret = 6

// hider hides the secrets of a source in texts of its server, which may repeat them.
func (s *Settings) hider() func(string) string {
	longFirst := slices.Clone(s.Secrets) // one may be a part of another
	slices.SortFunc(longFirst, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, secret := range longFirst {
		if len(secret) >= shortestSecret {
			pairs = append(pairs, secret, "(secret)")
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// conceal hides the secrets of the source in an error, in place.
func (c *Client) conceal(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	e.Reason = c.hide(e.Reason)
	if e.Err != nil {
		if text := e.Err.Error(); c.hide(text) != text {
			e.Err = errors.New(c.hide(text))
		}
	}
	return err
}
