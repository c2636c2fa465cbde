package openid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/oauth2"
)

// Login is somebody who is signed in on a machine without a browser of its own, at one writ. It is
// as secret as an API key.
type Login struct {
	Issuer   string        `json:"issuer"`
	ClientID string        `json:"client_id"`
	Scopes   []string      `json:"scopes"`
	Resource string        `json:"resource"` // that the tokens are for
	Token    *oauth2.Token `json:"token"`
}

func (l *Login) providers() *Providers {
	return New([]Provider{{Issuer: l.Issuer, Client: Client{ID: l.ClientID, Scopes: l.Scopes}}}, time.Now, slog.New(slog.DiscardHandler))
}

// Device signs a person in by the device flow (RFC 8628): they open an address in any browser and
// enter a code, which show gets. It returns when they have agreed or refused, or when ctx ends.
func (l *Login) Device(ctx context.Context, show func(address, code string)) error {
	x, c, err := l.providers().client(ctx, l.Issuer)
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("the provider %s does not answer, or is no OpenID provider", l.Issuer)
	}
	if err != nil {
		return err
	}
	if c.Endpoint.DeviceAuthURL == "" {
		return errors.New("the provider " + l.Issuer + " has no device flow, which writ login needs: use an API key (WRIT_API_KEY, or --key)")
	}
	resource := oauth2.SetAuthURLParam("resource", l.Resource)
	asked, err := c.DeviceAuth(x.web(ctx), resource)
	if err != nil {
		return fmt.Errorf("the provider %s does not let the client %s sign people in by the device flow: %w", l.Issuer, l.ClientID, err)
	}
	show(asked.VerificationURI, asked.UserCode)
	l.Token, err = c.DeviceAccessToken(x.web(ctx), asked, resource)
	if err != nil {
		return fmt.Errorf("nobody is signed in: %w", err)
	}
	return nil
}

// AccessToken returns one that is in force. renewed: the login has changed, and must be stored.
func (l *Login) AccessToken(ctx context.Context) (token string, renewed bool, err error) {
	fresh, err := l.providers().refresh(ctx, l.Issuer, l.Resource, l.Token)
	if err != nil {
		return "", false, err
	}
	renewed = fresh != l.Token
	l.Token = fresh
	return fresh.AccessToken, renewed, nil
}
