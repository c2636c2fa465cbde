package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/durable"
)

// External is a service of somebody else that may connect: a file of the data directory,
// mode 0600. Only the service has the private half of its key.
type External struct {
	Name    string     `json:"name"`
	Types   []string   `json:"types,omitempty"` // that an executor carries out
	NKey    string     `json:"nkey"`            // public
	Issued  time.Time  `json:"issued"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

// Externals are the services of one sort.
type Externals struct {
	dir   string         // of their files, named after the services
	names *regexp.Regexp // that they may have
	form  string         // of a name, in words
	Issue string         // the command that makes credentials
}

// Executors of vendors have the names that their rows give them. EventReaders have the tenant
// and a name without an underscore.
var (
	Executors    = Externals{"executors", regexp.MustCompile(`^x-[a-z0-9_-]{1,30}$`), "a vendor's executor: x-<vendor> or x-<vendor>-<name>", "writ admin executor issue"}
	EventReaders = Externals{"readers", regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}_[a-z0-9-]{1,30}$`), "a reader of events: <tenant>_<name>, the name of a-z, 0-9 and -", "writ admin events issue"}
)

// ErrIssued reports that a service has credentials that are not revoked.
var ErrIssued = errors.New("it has credentials already")

// errNoCredentials reports that a file admits nobody. New credentials may replace it.
var errNoCredentials = errors.New("no credentials")

// Valid reports whether a service may have a name.
func (e Externals) Valid(name string) bool { return e.names.MatchString(name) }

func (e Externals) file(data, name string) (string, error) {
	if !e.Valid(name) {
		return "", fmt.Errorf("%q is not a name of %s", name, e.form)
	}
	return filepath.Join(data, e.dir, name+".json"), nil
}

// Admit makes credentials for a service and returns the seed, which is stored nowhere. A running
// process of the data directory admits it within a second. The error is ErrIssued if it has
// credentials.
func (e Externals) Admit(data, name string, types []string, now time.Time) (seed string, err error) {
	path, err := e.file(data, name)
	if err != nil {
		return "", err
	}
	before, err := e.read(path)
	if err == nil && before.Revoked == nil {
		return "", ErrIssued
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoCredentials) {
		return "", err
	}
	seed, public, err := bus.NewNKey()
	if err != nil {
		return "", err
	}
	return seed, durable.WriteJSON(path, External{Name: name, Types: slices.Sorted(slices.Values(types)), NKey: public, Issued: now.UTC().Truncate(time.Second)})
}

// Revoke ends a service's credentials. A running process disconnects it within a second.
func (e Externals) Revoke(data, name string, now time.Time) error {
	path, err := e.file(data, name)
	if err != nil {
		return err
	}
	o, err := e.read(path)
	if err != nil {
		return err
	}
	if o.Revoked == nil {
		at := now.UTC().Truncate(time.Second)
		o.Revoked = &at
	}
	return durable.WriteJSON(path, o)
}

// List has those that a data directory knows, by name, with the revoked ones. The error names
// files that cannot be read; the others are returned all the same.
func (e Externals) List(data string) ([]External, error) {
	entries, err := os.ReadDir(filepath.Join(data, e.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []External
	var unread []error
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".json" {
			continue
		}
		o, err := e.read(filepath.Join(data, e.dir, entry.Name()))
		if err != nil {
			unread = append(unread, err)
			continue
		}
		out = append(out, o)
	}
	return out, errors.Join(unread...)
}

func (e Externals) read(path string) (External, error) {
	var o External
	there, err := durable.ReadExactJSON(path, &o)
	switch name := strings.TrimSuffix(filepath.Base(path), ".json"); {
	case !there && err == nil:
		return o, fs.ErrNotExist
	case errors.As(err, new(*fs.PathError)):
		return o, err
	case err != nil || o.Name != name:
		return o, fmt.Errorf("%s: %w (%v): issue new ones with %s %s", path, errNoCredentials, err, e.Issue, name)
	}
	return o, nil
}
