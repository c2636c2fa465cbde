package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

// decode decodes an answer of the API.
func decode(a *edge.Tap, out any) error {
	if err := json.Unmarshal(a.Body.Bytes(), out); err != nil {
		return fmt.Errorf("console: answer of the interface: %w", err)
	}
	return nil
}

// fetch sends a request to the API. The rate limit counts the person's pages, not the requests
// behind them.
func (c *Console) fetch(ctx context.Context, who credentials, method, path string, in any) (*edge.Tap, error) {
	a := edge.Keep()
	return a, c.serve(ctx, who, method, path, in, a)
}

// authorize lets a request carry the credentials.
func (who credentials) authorize(ctx context.Context, r *http.Request) error {
	if who.person == nil {
		r.Header.Set("X-Api-Key", who.key)
		return nil
	}
	token, err := who.person.AccessToken(ctx)
	switch {
	case errors.Is(err, openid.ErrUnavailable):
		return problem.New(intents.DispatchUnavailable, "", "the OpenID provider does not answer")
	case err != nil:
		return problem.New(intents.Unauthorized, "", "the sign-in is over: sign in again")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// serve has the API of this process answer; a refusal is the error.
func (c *Console) serve(ctx context.Context, who credentials, method, path string, in any, a *edge.Tap) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return err
	}
	r.RequestURI, r.RemoteAddr = path, who.address
	if err := who.authorize(ctx, r); err != nil {
		return err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if who.secure {
		r.Header.Set("X-Forwarded-Proto", "https")
	}
	if who.user != "" {
		r.Header.Set("X-User-Id", who.user)
	}
	if !who.entering {
		r = gateway.Paced(r)
	}
	c.API.ServeHTTP(a, r)
	if a.Status >= http.StatusBadRequest {
		p := &problem.Problem{}
		if err := decode(a, p); err != nil {
			return err
		}
		p.Status = a.Status
		return p
	}
	return nil
}
