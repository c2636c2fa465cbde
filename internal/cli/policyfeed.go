package cli

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/policies"
)

// policyFeed is where the configuration says that policies come from, and where
// decisions are logged.
func policyFeed(std IO, c config.Config) (feed *policies.Feed, events eventFile, err error) {
	feed = &policies.Feed{}
	place := func(at string) policies.Place { return policies.Place{At: at} }
	if c.PolicyKey != "" {
		raw, err := os.ReadFile(c.PolicyKey)
		if err != nil {
			return feed, events, fmt.Errorf("policy_key: %w", err)
		}
		key, err := policies.ParsePublicKey(raw)
		if err != nil {
			return feed, events, fmt.Errorf("policy_key: %s: %w", c.PolicyKey, err)
		}
		place = func(at string) policies.Place { return policies.Place{At: at, Key: key} }
	}
	feed.Main = place(c.Policies)
	feed.Main.Token = c.PolicyToken
	for _, x := range c.PolicyExtensions {
		name, at, _ := strings.Cut(x, "=") // as Validate has seen
		p := place(at)
		if sameServer(c.Policies, at) {
			p.Token = c.PolicyToken
		}
		feed.Extensions = append(feed.Extensions, policies.Extension{Name: name, Place: p})
	}
	switch c.PolicyLog {
	case "":
	case "-":
		events.w = std.Out
	default:
		f, err := os.OpenFile(c.PolicyLog, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return feed, events, fmt.Errorf("policy_log: %w", err)
		}
		events.w, events.file = f, f
	}
	return feed, events, nil
}

// sameServer: a token goes to no other server than the one that it is for.
func sameServer(a, b string) bool {
	x, err1 := url.Parse(a)
	y, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && x.Host != "" && x.Scheme == y.Scheme && x.Host == y.Host
}

// eventFile is where decision-log events go; the zero value: nowhere.
type eventFile struct {
	w    io.Writer
	file *os.File // to be closed; nil: standard output, or none
}

func (f eventFile) log() *policies.DecisionLog {
	if f.w == nil {
		return nil
	}
	host, _ := os.Hostname() // a label may be empty
	return policies.NewDecisionLog(f.w, map[string]string{"app": "writ", "host": host})
}

func (f eventFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
