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

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/durable"
)

// ExternalExecutor is a service of somebody else that may connect and carry out its own
// types: a file of the data directory, executors/<name>.json, mode 0600. Only the service
// has the private half of its key.
type ExternalExecutor struct {
	Name    string     `json:"name"` // of the executor, as its rows say
	Types   []string   `json:"types"`
	NKey    string     `json:"nkey"` // public
	Issued  time.Time  `json:"issued"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

// ErrIssued says that an executor has credentials that are not revoked.
var ErrIssued = errors.New("the executor has credentials already")

// errNoCredentials says that a file lets nobody in. New credentials may replace it.
var errNoCredentials = errors.New("no credentials of an executor")

func executorsDir(data string) string { return filepath.Join(data, "executors") }

// executorName is a name that a vendor's row may give its executor. The file is named
// after it.
var executorName = regexp.MustCompile(`^x-[a-z0-9_-]{1,30}$`)

func executorFile(data, name string) (string, error) {
	if !executorName.MatchString(name) {
		return "", fmt.Errorf("%q is not a name of a vendor's executor: x-<vendor> or x-<vendor>-<name>", name)
	}
	return filepath.Join(executorsDir(data), name+".json"), nil
}

// IssueExecutor makes credentials for an executor and returns the seed, which is stored
// nowhere. A running process of the data directory lets it in within a second. The error
// is ErrIssued if it has credentials.
func IssueExecutor(data, name string, types []string, now time.Time) (seed string, err error) {
	path, err := executorFile(data, name)
	if err != nil {
		return "", err
	}
	before, err := readExecutor(path)
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
	return seed, writeExecutor(data, ExternalExecutor{Name: name, Types: slices.Sorted(slices.Values(types)), NKey: public, Issued: now.UTC().Truncate(time.Second)})
}

// RevokeExecutor ends an executor's credentials. A running process disconnects it within
// a second.
func RevokeExecutor(data, name string, now time.Time) error {
	path, err := executorFile(data, name)
	if err != nil {
		return err
	}
	o, err := readExecutor(path)
	if err != nil {
		return err
	}
	if o.Revoked == nil {
		at := now.UTC().Truncate(time.Second)
		o.Revoked = &at
	}
	return writeExecutor(data, o)
}

// ExternalExecutors are those that a data directory knows, by name, with the revoked ones.
// The error names files that cannot be read; the others are returned all the same.
func ExternalExecutors(data string) ([]ExternalExecutor, error) {
	entries, err := os.ReadDir(executorsDir(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []ExternalExecutor
	var unread []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		o, err := readExecutor(filepath.Join(executorsDir(data), e.Name()))
		if err != nil {
			unread = append(unread, err)
			continue
		}
		out = append(out, o)
	}
	return out, errors.Join(unread...)
}

func readExecutor(path string) (ExternalExecutor, error) {
	var o ExternalExecutor
	there, err := durable.ReadExactJSON(path, &o)
	switch name := strings.TrimSuffix(filepath.Base(path), ".json"); {
	case !there && err == nil:
		return o, fs.ErrNotExist
	case errors.As(err, new(*fs.PathError)):
		return o, err
	case err != nil || o.Name != name:
		return o, fmt.Errorf("%s: %w (%v): issue new ones with writ executor issue %s", path, errNoCredentials, err, name)
	}
	return o, nil
}

// writeExecutor replaces the file in one step, durably.
func writeExecutor(data string, o ExternalExecutor) error {
	path, err := executorFile(data, o.Name)
	if err != nil {
		return err
	}
	return durable.WriteJSON(path, o)
}
