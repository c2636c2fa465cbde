package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/openid"
)

// logins are those of this person on this machine, by the URL of each writ.
type logins struct{ file string }

func loginsOf(std IO) logins {
	return logins{filepath.Join(cmp.Or(std.Env("XDG_CONFIG_HOME"), filepath.Join(std.Env("HOME"), ".config")), "writ", "logins.json")}
}

func (l logins) read() (list map[string]*openid.Login, err error) {
	_, err = durable.ReadJSON(l.file, &list)
	maps.DeleteFunc(list, func(_ string, login *openid.Login) bool { return login == nil || login.Token == nil }) // written by somebody else
	return list, err
}

// put stores a login; nil: forgets it.
func (l logins) put(at string, login *openid.Login) error {
	list, err := l.read()
	if err != nil {
		return err
	}
	if list == nil {
		list = map[string]*openid.Login{}
	}
	list[at] = login
	if login == nil {
		delete(list, at)
	}
	if err := durable.MkdirAll(filepath.Dir(l.file)); err != nil {
		return err
	}
	return durable.WriteJSON(l.file, list)
}

// token is the access token for a writ; empty: nobody is signed in there.
func (l logins) token(ctx context.Context, at string) (string, error) {
	list, err := l.read()
	if err != nil || list[at] == nil {
		return "", err
	}
	token, renewed, err := list[at].AccessToken(ctx)
	if errors.Is(err, openid.ErrEnded) { // unless another command has renewed it meanwhile
		was := list[at].Token.RefreshToken
		if list, err = l.read(); err != nil || list[at] == nil || list[at].Token.RefreshToken == was {
			return "", errors.Join(err, errors.New("the sign-in is over: writ login --url "+at))
		}
		token, renewed, err = list[at].AccessToken(ctx)
	}
	if errors.Is(err, openid.ErrEnded) {
		return "", errors.New("the sign-in is over: writ login --url " + at)
	}
	if err == nil && renewed {
		err = l.put(at, list[at])
	}
	return token, err
}

// signInAt is what a writ tells of where its people sign in.
type signInAt struct {
	Resource string      `json:"resource"`
	At       []openid.At `json:"writ_sign_in"`
}

func loginCommand(c *command) {
	var issuer string
	var forget bool
	c.placeFlags()
	c.Flags().StringVar(&issuer, "issuer", "", "OpenID provider, if the writ names several")
	c.Flags().BoolVar(&forget, "forget", false, "forget the sign-in on this machine")
	c.answer = func([]string) (answer, error) {
		at, stored := c.url, loginsOf(c.std)
		if forget {
			return answer{data: map[string]string{"url": at}, note: "nobody is signed in at " + at + " on this machine\n"}, stored.put(at, nil)
		}
		var said signInAt
		if err := (client.Client{URL: at}).Get(c.Context(), "/.well-known/oauth-protected-resource/mcp", &said); err != nil {
			return answer{}, err
		}
		if said.Resource != at+"/mcp" { // RFC 9728, section 3.3: else this writ would get tokens for another one
			return answer{}, fmt.Errorf("%s says that it is %q: sign in by that address (--url), or have the operator set public_url", at, strings.TrimSuffix(said.Resource, "/mcp"))
		}
		l, err := choose(said, issuer)
		if err != nil {
			return answer{}, err
		}
		if err := l.Device(c.Context(), func(address, code string) {
			fmt.Fprintf(c.std.Err, "Open %s and enter %s\n", address, code)
		}); err != nil {
			return answer{}, err
		}
		if err := stored.put(at, l); err != nil {
			return answer{}, err
		}
		return answer{data: map[string]string{"url": at, "issuer": l.Issuer}, note: "signed in at " + at + "; commands for it need no API key\n"}, nil
	}
}

func choose(said signInAt, issuer string) (*openid.Login, error) {
	for _, p := range said.At {
		if issuer == "" && len(said.At) == 1 || p.Issuer == issuer {
			return &openid.Login{Issuer: p.Issuer, ClientID: p.ClientID, Scopes: p.Scopes, Resource: said.Resource}, nil
		}
	}
	if len(said.At) == 0 {
		return nil, errors.New("that writ has no OpenID provider to sign in with: its operator names one, with a client_id, in oidc of writ.yaml; until then use an API key (WRIT_API_KEY, or --key)")
	}
	issuers := make([]string, len(said.At))
	for i, p := range said.At {
		issuers[i] = "--issuer " + p.Issuer
	}
	return nil, usage(fmt.Errorf("that writ has these OpenID providers; choose one: %s", strings.Join(issuers, ", ")))
}
