package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// OIDC is one entry of oidc: an OpenID provider, and who its subjects are.
type OIDC struct {
	Issuer       string     `yaml:"issuer"`
	ClientID     string     `yaml:"client_id"` // of writ, where people sign in; empty: they do not
	ClientSecret string     `yaml:"client_secret"`
	Scopes       []string   `yaml:"scopes"` // of a sign-in; empty: openid
	Users        []OIDCUser `yaml:"users"`
	Roles        []OIDCRole `yaml:"roles"` // beside those of the users
}

// OIDCRole is a role of the users whose access token has a value in a claim.
type OIDCRole struct {
	Claim string `yaml:"claim"`
	Value string `yaml:"value"`
	Role  string `yaml:"role"`
}

// OIDCUser maps a subject to a user.
type OIDCUser struct {
	Subject string   `yaml:"sub"`
	Tenant  string   `yaml:"tenant"` // empty: default
	User    string   `yaml:"user"`
	Roles   []string `yaml:"roles"`
}

// decodeList reads a list of tables, whose members must be known.
func decodeList[T any](doc yaml.Node) (list []T, err error) {
	raw, err := yaml.Marshal(&doc)
	if err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	err = dec.Decode(&list)
	return list, err
}

var userName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// checkOIDC returns the first fault of the entries of oidc.
func (c Config) checkOIDC() error {
	if len(c.OIDC) > 0 && c.PublicURL == "" {
		return errors.New("oidc: needs public_url, for which tokens are issued")
	}
	known := map[string]bool{}
	for i, p := range c.OIDC {
		at := fmt.Sprintf("oidc[%d]", i)
		u, ok := httpURL(p.Issuer)
		local := ok && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
		switch {
		case !ok || u.Scheme != "https" && !local || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
			return fmt.Errorf("%s: issuer %q is not https://host[:port][/path], as the provider writes it in iss", at, p.Issuer)
		case known[p.Issuer]:
			return fmt.Errorf("%s: the issuer %s has another entry: write all users there", at, p.Issuer)
		case p.ClientID == "" && (p.ClientSecret != "" || len(p.Scopes) > 0):
			return fmt.Errorf("%s: client_secret and scopes go with client_id, by which the provider knows writ", at)
		case len(p.Scopes) > 0 && !slices.Contains(p.Scopes, "openid"):
			return fmt.Errorf("%s: scopes need openid", at)
		case len(p.Users) == 0:
			return fmt.Errorf("%s: users are missing: {sub, user, roles}", at)
		}
		for _, r := range p.Roles {
			if r.Claim == "" || r.Value == "" || !userName.MatchString(r.Role) {
				return fmt.Errorf("%s: the role %q of a claim needs claim, value and role", at, r.Role)
			}
		}
		known[p.Issuer] = true
		subjects := map[string]bool{}
		for _, u := range p.Users {
			if u.Subject == "" || strings.TrimSpace(u.Subject) != u.Subject || !userName.MatchString(u.User) || u.Tenant != "" && !userName.MatchString(u.Tenant) || len(u.Roles)+len(p.Roles) == 0 || subjects[u.Subject] {
				return fmt.Errorf("%s: the user with sub %q needs a sub of its own, user, and roles; names match %s", at, u.Subject, userName)
			}
			subjects[u.Subject] = true
		}
	}
	return nil
}

// resolveOIDC puts the secrets of clients in the place of texts that say where they are.
func resolveOIDC(c *Config) error {
	c.OIDC = slices.Clone(c.OIDC)
	for i := range c.OIDC {
		if err := resolveText(c, &c.OIDC[i].ClientSecret, "oidc.client_secret"); err != nil {
			return err
		}
	}
	return nil
}

// RereadOIDC reads oidc again, with its secrets. All else stays.
func (c Config) RereadOIDC() (Config, error) {
	now, err := Load(c.File, func(string) string { return "" })
	if err != nil {
		return c, err
	}
	c.OIDC, c.SecretFiles = now.OIDC, slices.Clone(c.SecretFiles)
	if err := c.checkOIDC(); err != nil {
		return c, err
	}
	return c, resolveOIDC(&c)
}

// OIDCStamp changes when the file of the configuration, or one with a secret, does.
func (c Config) OIDCStamp() (stamp string) {
	for _, path := range append([]string{cmp.Or(c.File, defaultFile)}, c.SecretFiles...) {
		if info, err := os.Stat(path); err == nil {
			stamp += fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp
}
