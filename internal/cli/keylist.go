package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
)

// keyRow is one key of `writ admin keys list` and `writ admin keys init`. Scripts rely on the shape.
type keyRow struct {
	KID      string       `json:"kid"`
	Role     intents.Role `json:"role"`
	Subject  string       `json:"subject,omitempty"`
	Tenant   string       `json:"tenant,omitempty"`
	NotAfter string       `json:"not_after,omitempty"`
	Revoked  bool         `json:"revoked"`
	Raw      bool         `json:"raw"`  // it signs as ed25519:<base64>
	Here     bool         `json:"here"` // the private half is in the data directory
}

type keyList struct {
	Origin  string   `json:"origin"`
	Version int64    `json:"version"`
	Keys    []keyRow `json:"keys"`
}

func (l keyList) answer() answer {
	return answer{data: l, note: fmt.Sprintf("%s, version %d\n", l.Origin, l.Version), text: render("keys.table", l)}
}

func rowsOf(keys []intents.JWK, here func(kid string) bool) []keyRow {
	rows := make([]keyRow, 0, len(keys))
	for _, j := range keys {
		rows = append(rows, keyRow{j.KID, j.Role, j.Subject, j.Tenant, j.NotAfter, j.Revoked, j.Raw, here(j.KID)})
	}
	return rows
}

func keysInit(c *command) {
	c.Flags().StringVar(&c.dir, "data", config.Default().Data, "data directory")
	c.answer = func([]string) (answer, error) {
		there, err := filepath.Glob(filepath.Join(c.keys(), "*.pem"))
		if err != nil {
			return answer{}, usage(err)
		}
		if len(there) > 0 {
			return answer{}, fmt.Errorf("%s has keys already, and none is overwritten: name another data directory with --data", c.keys())
		}
		keys, err := keydir.Create(c.keys())
		if err != nil {
			return answer{}, err
		}
		list := keyList{Origin: state.Origin(keys[intents.RoleRoot].Public()), Keys: rowsOf(keys.KeySet().Keys, func(string) bool { return true })}
		fmt.Fprintf(c.std.Err, "keys made in %s; the first start needs all of them. Then take the root key offline (writ admin keys root move)\n", c.keys())
		return list.answer(), nil
	}
}

func keysList(c *command) {
	c.operatorFlags()
	c.answer = func([]string) (answer, error) {
		set, err := c.keySet()
		if err != nil {
			return answer{}, err
		}
		held, err := keydir.LoadAll(c.keys())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return answer{}, malformed(err)
		}
		here := func(kid string) bool { _, ok := held[kid]; return ok }
		return keyList{set.Origin, set.Version, rowsOf(set.Keys, here)}.answer(), nil
	}
}

// keySet is the key set in force: of the record, or of the writ whose URL is given.
func (c *command) keySet() (intents.JWKS, error) {
	if targetOf(c.Command).explicitURL() {
		return c.keysInForce()
	}
	d, err := c.rebuildState()
	if err != nil {
		return intents.JWKS{}, err
	}
	return d.JWKS(), nil
}

// keysInForce is the key set that a writ publishes.
func (c *command) keysInForce() (set intents.JWKS, err error) {
	if err := (client.Client{URL: c.url}).Get(c.Context(), "/.well-known/jwks.json", &set); err != nil {
		return set, err
	}
	if _, err := set.Admit(); err != nil || set.Origin == "" {
		return set, malformed(fmt.Errorf("%s does not serve the key set of a writ as /.well-known/jwks.json", c.url))
	}
	return set, nil
}

func keysExport(c *command) {
	var trust bool
	c.answer = func([]string) (answer, error) {
		if trust {
			return c.trust()
		}
		set, err := c.keysInForce()
		if err != nil {
			return answer{}, err
		}
		return document(set)
	}
	c.operatorFlags()
	c.Flags().BoolVar(&trust, "trust", false, "print the trust file {origin, root}")
}

// writeNew writes a file that must not exist, readable only by its owner.
func writeNew(path string, content []byte) error {
	err := durable.New(path, content)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already, and it is not overwritten", path)
	}
	return err
}

// notAfter is the text of a time in a key set.
func notAfter(t time.Time) string { return t.UTC().Format(time.RFC3339) }
