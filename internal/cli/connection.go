package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
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
	if at == nil && data == nil {
		return target{}, nil
	}
	t, err := find(std, flagValue(at), flagValue(data), flagValue(key))
	if err != nil {
		return t, malformed(err)
	}
	if key != nil && t.explicitURL() && t.Key.From != "--key" && t.Key.From != "WRIT_API_KEY" {
		token, err := loginsOf(std).token(cmd.Context(), t.URL.Value)
		if err != nil {
			return t, err
		}
		if token != "" {
			t.Key = setting{token, "writ login"}
		}
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

// explicitURL reports whether the user named a URL, which overrides the data directory on this
// machine.
func (t target) explicitURL() bool {
	return t.URL.From != "default" && t.URL.From != t.Data.Value && t.URL.From != filepath.Join(t.Data.Value, "address")
}

// flagValue is the value of a flag that was given.
func flagValue(f *pflag.Flag) string {
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
	if u, err := url.Parse(t.URL.Value); t.explicitURL() && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return t, fmt.Errorf("%s: %q is no URL: write http://HOST:PORT or https://HOST", t.URL.From, t.URL.Value)
	}
	t.URL.Value = strings.TrimSuffix(t.URL.Value, "/")
	t.Key = keyFor(t, first(setting{key, "--key"}, setting{std.Env("WRIT_API_KEY"), "WRIT_API_KEY"}))
	return t, nil
}

// own is the URL of the writ on the data directory; empty if it does not run. If there is
// no such directory, it is where a new one would listen.
func (t target) own(listen string, env func(string) string) (setting, error) {
	s := setting{From: filepath.Join(t.Data.Value, "address")}
	at, err := datadir.ReadAddress(t.Data.Value)
	if err == nil && at.Cert != "" {
		err = client.Expect(at.URL, at.Cert)
	}
	if s.Value = at.URL; err != nil || s.Value != "" {
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

// wouldListen is the address on which a writ of this configuration would listen. It is the last
// resort, and always an address of this machine, whatever the file contains.
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
	if !named && t.explicitURL() && !onThisMachine(t.URL.Value) {
		return setting{From: "none"}
	}
	raw, err := datadir.LocalKey(t.Data.Value)
	if err != nil || raw == "" {
		return setting{From: "none"} // commands that need a key say so
	}
	return setting{raw, datadir.KeyFile(t.Data.Value)}
}

// onThisMachine reports whether a URL is on this machine.
func onThisMachine(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Hostname() == "localhost" || datadir.Local(u.Hostname()))
}

// unanswered is the advice if nobody answers.
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

// personFlags declares the flags for the writ that a command uses and the API key.
func (c *command) personFlags() {
	c.placeFlags()
	c.Flags().StringVar(&c.key, "key", "", "API key (default: from WRIT_API_KEY, or the data directory)")
}

// signerFlag declares the file of a private key that signs.
func (c *command) signerFlag(help string) { c.Flags().StringVar(&c.signer, "signer", "", help) }

// placeFlags declares the flags for the writ that a command uses. A given data directory must
// exist, or the command would use any writ at the default address.
func (c *command) placeFlags() {
	c.stands = func() error {
		if t := targetOf(c.Command); t.Data.From != "--data" || t.explicitURL() {
			return nil
		}
		return datadir.Exists(c.dir)
	}
	c.Flags().StringVar(&c.url, "url", "", "URL of writ (default: from WRIT_URL, or the data directory)")
	c.Flags().StringVar(&c.dir, "data", config.Default().Data, "data directory of a writ on this machine (or from WRIT_DATA, writ.yaml)")
}

// client speaks to the gateway with the API key.
func (c *command) client() (client.Client, error) {
	if c.key == "" && !targetOf(c.Command).explicitURL() {
		if err := datadir.Exists(c.dir); err != nil {
			return client.Client{}, malformed(fmt.Errorf("no API key: %w; or give a key: --key, WRIT_API_KEY", err))
		}
	}
	if c.key == "" {
		return client.Client{}, errors.New("no API key: set WRIT_API_KEY, give --key, name the data directory of a local `writ up` with --data, or sign in (writ login)")
	}
	skillKey, err := c.skillKey()
	return client.Client{URL: c.url, Key: c.key, SkillKey: skillKey}, err
}

// skillKeyFlag declares where the caller's own key for skill servers is.
func (c *command) skillKeyFlag() {
	c.Flags().StringVar(&c.place, "skill-key", "", "where your own key for skill servers with forward_api_key is: env:NAME, file:PATH, or cmd:COMMAND that prints it")
}

// skillKey reads the caller's own key for skill servers. No error has the value of the flag, which may be the key.
func (c *command) skillKey() (key string, err error) {
	kind, name, _ := strings.Cut(c.place, ":")
	switch {
	case c.place == "":
	case kind == "env":
		if key = c.std.Env(name); key == "" {
			err = malformed(fmt.Errorf("--skill-key: the variable %s is not set", name))
		}
	case kind == "file" || kind == "cmd":
		if key, err = config.Secret(c.place, "--skill-key"); err != nil {
			err = malformed(err)
		}
	default:
		err = usage(errors.New("--skill-key says where the key is, and is not the key: write env:NAME, file:PATH or cmd:COMMAND"))
	}
	return key, err
}
