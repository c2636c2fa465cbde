package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A secret can be in a file or come from a command, so that every secret manager with a
// program of its own serves: none of their libraries is needed.
const (
	inFile      = "file:"
	fromCommand = "cmd:"

	maxSecret     = 64 << 10
	secretTime    = 30 * time.Second
	secretPatient = 5 * time.Second // for descendants of the command
)

// placed reports whether a text names the place of a secret.
func placed(text string) bool {
	return strings.HasPrefix(text, inFile) || strings.HasPrefix(text, fromCommand)
}

// Every stands for all secrets, those of models and notices, too. NoticesKey stands for those of notices.
const (
	Every      = "*"
	NoticesKey = "notices"
)

// Resolve puts secrets in the place of texts that say where they are: of the settings that are
// needed, or Every. Load leaves them as they are, and so do commands that do not need them: nothing is
// run for those.
func (c Config) Resolve(getenv func(string) string, needed ...string) (Config, error) {
	every := slices.Contains(needed, Every)
	for _, s := range Settings {
		text, ok := s.Bind(&c).(*string)
		if !s.Secret || !ok || !every && !slices.Contains(needed, s.Name) {
			continue
		}
		from := s.Name
		for _, name := range s.Variables() {
			if getenv(name) != "" {
				from = name
				break
			}
		}
		if err := resolveText(&c, text, from); err != nil {
			return c, err
		}
	}
	if every || slices.Contains(needed, NoticesKey) {
		c.Notices = slices.Clone(c.Notices)
		for i := range c.Notices {
			n := &c.Notices[i]
			for member, text := range map[string]*string{"url": &n.URL, "secret": &n.Secret} {
				if err := resolveText(&c, text, NoticesKey+"."+n.Name+"."+member); err != nil {
					return c, err
				}
			}
		}
	}
	if !every {
		return c, nil
	}
	if err := resolveOIDC(&c); err != nil {
		return c, err
	}
	c.Models = maps.Clone(c.Models)
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		m := c.Models[name]
		if err := resolveText(&c, &m.Key, "models."+name+".key"); err != nil {
			return c, err
		}
		c.Models[name] = m
	}
	return c, nil
}

// Secret is the secret at a place. from is what names the place.
func Secret(place, from string) (string, error) {
	err := resolveText(&Config{}, &place, from)
	return place, err
}

// resolveText replaces the text that names a secret's place by the secret. from is the setting or
// variable that has the text. No error contains the secret or other output of the command, which
// may be secret, too.
func resolveText(c *Config, text *string, from string) (err error) {
	var raw []byte
	file, isFile := strings.CutPrefix(*text, inFile)
	command, isCommand := strings.CutPrefix(*text, fromCommand)
	switch {
	case isFile:
		c.SecretFiles = append(c.SecretFiles, file)
		raw, err = secretFile(file)
	case isCommand:
		raw, err = secretCommand(strings.Fields(command))
	case from == secretName:
		return fmt.Errorf("%s: it does not say where the secret is: write file:PATH, or cmd: and a command that prints it, "+
			"such as cmd:gcloud secrets versions access latest --secret=NAME --project=PROJECT", from)
	default:
		return nil
	}
	secret := strings.TrimRight(string(raw), "\r\n")
	switch {
	case err != nil:
	case len(raw) > maxSecret:
		err = fmt.Errorf("there are more than %d bytes: that is no secret", maxSecret)
	case strings.TrimSpace(secret) == "":
		err = errors.New("there is nothing: put the secret there, or remove the setting")
	case strings.ContainsAny(secret, "\r\n\x00"):
		err = errors.New("there is more than one line: a secret is one line of text")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	*text = secret
	return nil
}

// secretFile reads a little more than may be there.
func secretFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: name a file that writ may read", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: name one", path)
	}
	f, err := os.Open(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return nil, fmt.Errorf("%w: let writ read it", err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSecret+1))
}

// secretCommand runs a command without a shell.
func secretCommand(words []string) ([]byte, error) {
	if len(words) == 0 {
		return nil, errors.New("cmd: has no command: write it and its arguments, with blanks between them")
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // G204: the operator names the command
	cmd.WaitDelay = secretPatient
	out := &limitedText{}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s has not ended within %v: run it by hand to see why", words[0], secretTime)
	case len(out.text) > maxSecret: // the limit ends the command, too
	case err != nil:
		return nil, fmt.Errorf("%s: %w: run the command by hand to see why", words[0], err)
	}
	return out.text, nil
}

// limitedText takes a little more than a secret may have.
type limitedText struct{ text []byte }

func (b *limitedText) Write(p []byte) (int, error) {
	room := maxSecret + 1 - len(b.text)
	b.text = append(b.text, p[:min(len(p), room)]...)
	if len(p) > room {
		return 0, errors.New("too much")
	}
	return len(p), nil
}
