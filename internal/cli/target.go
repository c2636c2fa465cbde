package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
)

// target is the writ that a command uses: its URL, its data directory on this machine, and
// the API key, each with its source. The first of these sources counts: flags, environment,
// writ.yaml, the data directory itself, the default.
type target struct {
	URL  setting `json:"url"`
	Data setting `json:"data"`
	Key  setting `json:"key"` // its value is never printed
}

// setting is a value and where it comes from.
type setting struct {
	Value string `json:"value,omitempty"`
	From  string `json:"from"`
}

// keyOfPerson marks the flag --key of commands that take an API key there. In other
// commands it is the file of an operator's key.
const keyOfPerson = "api key"

// aim sets the flags of a command that were not given. Commands that run or repair a node
// have --config, and read the whole configuration instead.
func aim(cmd *cobra.Command, std IO) (target, error) {
	flags := cmd.Flags()
	if flags.Lookup("config") != nil {
		return target{}, nil
	}
	at, data, key := flags.Lookup("url"), flags.Lookup("data"), flags.Lookup("key")
	if data != nil && data.DefValue != config.Default().Data { // it names a directory for something else
		data = nil
	}
	if key != nil && key.Annotations[keyOfPerson] == nil {
		key = nil
	}
	if at == nil && data == nil {
		return target{}, nil
	}
	t, err := find(std, given(at), given(data), given(key))
	if err != nil {
		return t, malformed(err)
	}
	cmd.SetContext(context.WithValue(cmd.Context(), targetKey{}, t))
	for flag, s := range map[*pflag.Flag]setting{at: t.URL, data: t.Data, key: t.Key} {
		if flag != nil && !flag.Changed {
			if err := flag.Value.Set(s.Value); err != nil {
				return t, malformed(err)
			}
		}
	}
	return t, nil
}

// targetKey is where a command's context has its target.
type targetKey struct{}

// targetOf a command that has been aimed.
func targetOf(cmd *cobra.Command) target {
	t, _ := cmd.Context().Value(targetKey{}).(target)
	return t
}

// elsewhere says whether the user named a URL, so that the data directory on this machine
// does not count.
func (t target) elsewhere() bool {
	return t.URL.From != "default" && t.URL.From != t.Data.Value && t.URL.From != filepath.Join(t.Data.Value, "address")
}

// given is the value of a flag that was given.
func given(f *pflag.Flag) string {
	if f == nil || !f.Changed {
		return ""
	}
	return f.Value.String()
}

// find determines the target. An empty argument was not given as a flag.
func find(std IO, at, data, key string) (t target, err error) {
	file, err := config.Load("", func(string) string { return "" })
	if err != nil {
		return t, err
	}
	t.Data = first(setting{data, "--data"}, setting{std.Env("WRIT_DATA"), "WRIT_DATA"}, setting{file.Data, "writ.yaml"})
	if t.Data.From == "writ.yaml" && file.Data == config.Default().Data {
		t.Data.From = "default"
	}
	t.URL = first(setting{at, "--url"}, setting{std.Env("WRIT_URL"), "WRIT_URL"})
	if t.URL.Value == "" {
		if t.URL, err = t.own(file.Listen, std.Env); err != nil {
			return t, err
		}
	}
	t.URL.Value = strings.TrimSuffix(t.URL.Value, "/")
	t.Key = keyFor(t, first(setting{key, "--key"}, setting{std.Env("WRIT_API_KEY"), "WRIT_API_KEY"}))
	return t, nil
}

// own is the URL of the writ on the data directory; empty if it does not run. If there is
// no such directory, it is where a new one would listen.
func (t target) own(listen string, env func(string) string) (setting, error) {
	s := setting{From: filepath.Join(t.Data.Value, "address")}
	var err error
	if s.Value, err = datadir.ReadAddress(t.Data.Value); err != nil || s.Value != "" {
		return s, err
	}
	if _, err := os.Stat(filepath.Join(t.Data.Value, "journal")); err == nil {
		return setting{From: t.Data.Value}, nil
	}
	return wouldListen(listen, env), nil
}

// first is the first setting that has a value, or else the last.
func first(list ...setting) setting {
	for _, s := range list {
		if s.Value != "" {
			return s
		}
	}
	return list[len(list)-1]
}

// wouldListen is where a writ of this configuration would listen. It is the last resort,
// and always an address of this machine, whatever a file says.
func wouldListen(addr string, env func(string) string) setting {
	s := setting{From: "default"}
	if v := env("WRIT_LISTEN"); v != "" {
		addr = v
	}
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil || port == "0":
		host, port, _ = net.SplitHostPort(config.Default().Listen)
	case !datadir.Local(host):
		host = "127.0.0.1"
	}
	s.Value = "http://" + net.JoinHostPort(host, port)
	return s
}

// keyFor is the API key: the given one, or the data directory's own. That goes to another
// machine only if the user named the directory, too.
func keyFor(t target, given setting) setting {
	if given.Value != "" {
		return given
	}
	named := t.Data.From == "--data" || t.Data.From == "WRIT_DATA"
	if !named && t.elsewhere() && !onThisMachine(t.URL.Value) {
		return setting{From: "none"}
	}
	raw, err := datadir.LocalKey(t.Data.Value)
	if err != nil || raw == "" {
		return setting{From: "none"} // commands that need a key say so
	}
	return setting{raw, datadir.KeyFile(t.Data.Value)}
}

// onThisMachine says whether a URL is on this machine.
func onThisMachine(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Hostname() == "localhost" || datadir.Local(u.Hostname()))
}

// unanswered says what to do if nobody answers.
func (t target) unanswered() string {
	switch start := "Start it: writ up --data " + t.Data.Value; {
	case t.URL.From == "":
		return ""
	case t.URL.Value == "":
		return "no writ runs on " + t.Data.Value + ". " + start + "; or name another: --url, WRIT_URL"
	case t.URL.From == filepath.Join(t.Data.Value, "address"):
		return "a writ on " + t.Data.Value + " left this address behind and no longer runs. " + start
	case t.URL.From == "default":
		return "there is no data directory either (" + t.Data.Value + "). Start a writ: writ up; or name one: --url, WRIT_URL, --data, WRIT_DATA"
	default:
		return "this address comes from " + t.URL.From
	}
}

// personFlags declares which writ a command uses, and with which API key.
func (c *command) personFlags() {
	c.placeFlags()
	c.Flags().StringVar(&c.key, "key", "", "API key (default: from WRIT_API_KEY, or the data directory)")
	_ = c.Flags().SetAnnotation("key", keyOfPerson, []string{""}) // the flag exists
}

// placeFlags declares which writ a command uses. A data directory that was given must be one,
// or the command would go to whatever writ is where one listens by default.
func (c *command) placeFlags() {
	c.stands = func() error {
		if t := targetOf(c.Command); t.Data.From != "--data" || t.elsewhere() {
			return nil
		}
		return datadir.Exists(c.dir)
	}
	c.Flags().StringVar(&c.url, "url", "", "URL of writ (default: from WRIT_URL, or the data directory)")
	c.Flags().StringVar(&c.dir, "data", config.Default().Data, "data directory of a writ on this machine (or from WRIT_DATA, writ.yaml)")
}

// client speaks to the gateway with the API key.
func (c *command) client() (client.Client, error) {
	if c.key == "" && !targetOf(c.Command).elsewhere() {
		if err := datadir.Exists(c.dir); err != nil {
			return client.Client{}, malformed(fmt.Errorf("no API key: %w; or give a key: --key, WRIT_API_KEY", err))
		}
	}
	if c.key == "" {
		return client.Client{}, errors.New("no API key: set WRIT_API_KEY, give --key, or name the data directory of a local `writ up` with --data")
	}
	return client.Client{URL: c.url, Key: c.key}, nil
}

// get reads an answer of the gateway.
func (c *command) get(path string, into any) error {
	return c.ofGateway(func(g client.Client) error { return g.Get(c.Context(), path, into) })
}

// post sends a body to the gateway, and reads its answer.
func (c *command) post(path string, body, into any) error {
	return c.ofGateway(func(g client.Client) error { return g.Post(c.Context(), path, body, into) })
}

// remove deletes something at the gateway, and reads its answer.
func (c *command) remove(path string, into any) error {
	return c.ofGateway(func(g client.Client) error { return g.Delete(c.Context(), path, into) })
}

func (c *command) ofGateway(ask func(client.Client) error) error {
	g, err := c.client()
	if err != nil {
		return err
	}
	return ask(g)
}

// pageFlags declares the flags for a page of a list. query asks for that page, with
// the other members that are not empty.
func (c *command) pageFlags() (query func(more map[string]string) string) {
	limit := c.Flags().Int("limit", 0, "maximum number of entries, 1 to 100 (default 20)")
	after := c.Flags().String("after", "", "continue after this cursor")
	return func(more map[string]string) string {
		q := url.Values{}
		if *limit != 0 {
			q.Set("limit", strconv.Itoa(*limit))
		}
		more["after"] = *after
		for name, value := range more {
			if value != "" {
				q.Set(name, value)
			}
		}
		return "?" + q.Encode()
	}
}

// nextPage says how to continue.
func nextPage(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "more: --after " + cursor + "\n"
}
