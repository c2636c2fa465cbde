package config

import (
	"errors"
	"fmt"
	"iter"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"aob.dev/writ/internal/notify"
)

// Notices is one entry of notices: where people are told of approvals that wait, and of which.
type Notices struct {
	Name   string   `yaml:"name"` // empty: that of its kind
	Kind   string   `yaml:"kind"` // one of notify.Kinds
	URL    string   `yaml:"url"`
	Secret string   `yaml:"secret"`
	From   string   `yaml:"from"`   // of kind mail
	To     []string `yaml:"to"`     // likewise
	Tenant string   `yaml:"tenant"` // empty: default where there are users, else every one
	Users  []string `yaml:"users"`
	Roles  []string `yaml:"roles"`
}

// Receivers are those of an entry, by name, each with its mail address: one for each address, so that
// one that is refused keeps nothing from the others.
func (n Notices) Receivers() iter.Seq2[string, string] {
	return func(yield func(name, to string) bool) {
		for i, to := range append(n.To[:len(n.To):len(n.To)], "")[:max(len(n.To), 1)] {
			name := n.Name
			if i > 0 {
				name = fmt.Sprintf("%s-%d", n.Name, i+1)
			}
			if !yield(name, to) {
				return
			}
		}
	}
}

// checkNotices returns the first fault of the entries of notices.
func (c Config) checkNotices() error {
	if len(c.Notices) > 0 && c.PublicURL == "" {
		return errors.New("notices: needs public_url, to which they link")
	}
	known := map[string]bool{}
	for i, n := range c.Notices {
		at := fmt.Sprintf("notices[%d]", i)
		u, err := url.Parse(n.URL)
		switch {
		case !slices.Contains(notify.Kinds(), n.Kind):
			return fmt.Errorf("%s: kind %q is not one of %s", at, n.Kind, strings.Join(notify.Kinds(), ", "))
		case !userName.MatchString(n.Name):
			return fmt.Errorf("%s: needs a name, %s", at, userName)
		case n.Tenant != "" && !userName.MatchString(n.Tenant):
			return fmt.Errorf("%s: tenant %q is no name", at, n.Tenant)
		case n.Kind == "mail":
			if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.Port() == "" || u.User != nil || u.Path != "" {
				return fmt.Errorf("%s: url is not smtps://host:port or smtp://host:port; user and password are its secret, USER:PASSWORD", at)
			}
			if n.Secret != "" && !strings.Contains(n.Secret, ":") {
				return fmt.Errorf("%s: secret is not USER:PASSWORD", at)
			}
			for _, address := range append([]string{n.From}, n.To...) {
				if a, err := mail.ParseAddress(address); err != nil || a.Address != address {
					return fmt.Errorf("%s: %q is no mail address: from and to are needed", at, address)
				}
			}
			if len(n.To) == 0 {
				return fmt.Errorf("%s: to is missing", at)
			}
		case n.From != "" || len(n.To) > 0:
			return fmt.Errorf("%s: from and to are of kind mail", at)
		default:
			if _, ok := httpURL(n.URL); !ok {
				return fmt.Errorf("%s: url is not http(s)://host[:port][/path]", at)
			}
		}
		for name := range n.Receivers() {
			if known[name] {
				return fmt.Errorf("%s: needs a name of its own, also for each mail address: %s is taken", at, name)
			}
			known[name] = true
		}
	}
	return nil
}
