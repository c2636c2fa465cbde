// Package cell makes processes a cell: the directory with the keys of each role, the connections to
// the NATS cluster, and what the processes read from one another over HTTP.
package cell

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// RoleExecutors is the directory of what executors need besides their connections.
const RoleExecutors = "executors"

// RoleMonitor is the one role that is not on the bus.
const RoleMonitor = "monitor"

// Names of the secrets of a cell, in the directories of the roles that need them.
const (
	Tags        = "tags"        // that tags of tenants are derived from
	Links       = "links"       // that links to artifacts are made with
	Idempotency = "idempotency" // that idempotency keys are made with
)

// genesisName is the file with the genesis of a cell.
const genesisName = "genesis"

// Keys is the directory of a role's keys, below that of a cell.
func Keys(dir, role string) string { return filepath.Join(dir, role, "keys") }

// given lists what each role of a cell gets besides the public keys: its private key and its
// secret.
var given = map[string]struct {
	key    intents.Role
	secret string
}{
	natsserver.Gateway: {intents.RoleGateway, Links}, natsserver.Router: {intents.RoleRouter, Idempotency}, natsserver.Recorder: {intents.RoleLedger, Tags},
	natsserver.Manager: {key: intents.RoleManager}, natsserver.Planner: {key: intents.RolePlanner}, natsserver.Workflow: {key: intents.RoleWorkflow},
	natsserver.Task: {}, RoleMonitor: {}, RoleExecutors: {secret: Links},
	string(intents.RoleOperator): {key: intents.RoleOperator}, string(intents.RoleRoot): {key: intents.RoleRoot},
}

// Create makes the keys of a cell and its genesis in a directory that must not exist: for each role
// a directory with its own key alone, and the public ones. policy and types are those in force when
// the log begins.
//
// Crash: the directory gets its name once it is complete.
func Create(dir string, policy *policies.Engine, types *catalog.Catalog) (origin string, err error) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return "", errors.Join(fmt.Errorf("%s is there already, and the keys of a cell are made once: name another directory", dir), err)
	}
	if err := durable.MkdirAll(filepath.Dir(dir)); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".cell-*")
	if err != nil {
		return "", err
	}
	if origin, err = create(made, policy, types); err != nil {
		return "", errors.Join(err, os.RemoveAll(made))
	}
	return origin, durable.Rename(made, dir)
}

func create(dir string, policy *policies.Engine, types *catalog.Catalog) (string, error) {
	all := filepath.Join(dir, ".all")
	keys, err := keydir.Create(all)
	if err != nil {
		return "", err
	}
	secret, err := ledger.CreateSecret(filepath.Join(all, Tags))
	if err != nil {
		return "", err
	}
	links, err := gateway.LinkKey(secret)
	if err != nil {
		return "", err
	}
	idempotency, err := storage.KeySecret(secret)
	if err != nil {
		return "", err
	}
	for name, derived := range map[string][]byte{Links: links, Idempotency: idempotency} {
		if err := durable.Write(filepath.Join(all, name), []byte(hex.EncodeToString(derived)+"\n")); err != nil {
			return "", err
		}
	}
	genesis, err := state.NewGenesis(keys[intents.RoleRoot], keys.KeySet(), policy.Digest(), types, state.HoldOnce("default"))
	if err != nil {
		return "", err
	}
	if err := durable.Write(filepath.Join(dir, genesisName), []byte(genesis)); err != nil {
		return "", err
	}
	set, err := publicKeys(genesis)
	if err != nil {
		return "", err
	}
	for role, of := range given {
		to := Keys(dir, role)
		if err := durable.MkdirAll(to); err != nil {
			return "", err
		}
		names := []string{}
		if of.key != "" {
			names = append(names, string(of.key)+".pem")
		}
		if of.secret != "" {
			names = append(names, of.secret)
		}
		for _, name := range names {
			raw, err := os.ReadFile(filepath.Join(all, name)) //nolint:gosec // G304: made above
			if err == nil {
				err = durable.Write(filepath.Join(to, name), raw)
			}
			if err != nil {
				return "", err
			}
		}
		if err := durable.Write(filepath.Join(to, jwksName), set); err != nil {
			return "", err
		}
	}
	return state.Origin(keys[intents.RoleRoot].Public()), os.RemoveAll(all)
}

// publicKeys are the first key set of a genesis, as a role's directory has it.
func publicKeys(genesis string) ([]byte, error) {
	g, err := state.OpenGenesis(genesis)
	if err != nil {
		return nil, err
	}
	root, err := g.RootJWK.ToKey()
	if err != nil {
		return nil, err
	}
	set, _, err := intents.OpenKeySet(g.KeySet, root.Public)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(intents.JWKS{Origin: g.Origin, Version: set.Version, Keys: set.Keys, KeySet: g.KeySet}, "", "  ")
}

// Genesis reads the genesis of the cell whose directory is dir.
func Genesis(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, genesisName)) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return "", fmt.Errorf("%w: writ admin cell create makes it", err)
	}
	return string(raw), nil
}

// ReadSigners reads the private keys of some directories of roles.
func ReadSigners(dirs []string) (keydir.Signers, error) {
	out := keydir.Signers{}
	for _, dir := range dirs {
		held, err := keydir.LoadSome(dir)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, held)
	}
	return out, nil
}

// Secret reads a secret from the first of some directories of roles that has it.
func Secret(dirs []string, name string) ([]byte, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return ledger.ReadSecret(path)
	}
	return nil, fmt.Errorf("keys: %s is in none of %s: writ admin cell create makes it for the roles that need it", name, strings.Join(dirs, ", "))
}

// jwksName is the file with the public keys of a cell, in the directory of each role.
const jwksName = "jwks.json"

// PublishedKeys are the log's public keys from a role's directory, for processes that have no other
// role's key. The file is read again when it changes.
type PublishedKeys struct {
	path string

	mu      sync.Mutex // guards what follows
	content string
	set     intents.JWKS
	keys    map[string]intents.Key
}

var _ interface {
	intents.Keys
	keydir.KeySet
} = (*PublishedKeys)(nil)

// OpenPublished reads the file of the first of some directories.
func OpenPublished(dirs []string) (*PublishedKeys, error) {
	if len(dirs) == 0 {
		return nil, errors.New("keys: name the directory of the role's keys with --keys: writ admin cell create makes them")
	}
	p := &PublishedKeys{path: filepath.Join(dirs[0], jwksName)}
	_, err := p.read()
	return p, err
}

// read reads the file if it has changed. A file that cannot be read changes nothing.
func (p *PublishedKeys) read() (changed bool, err error) {
	info, err := os.Stat(p.path)
	if err != nil {
		return false, fmt.Errorf("keys: %w: writ admin cell create makes it", err)
	}
	seen := fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.content == seen {
		return false, nil
	}
	raw, err := os.ReadFile(p.path)
	if err != nil {
		return false, fmt.Errorf("keys: %w", err)
	}
	p.content = seen
	var set intents.JWKS
	if err := json.Unmarshal(raw, &set); err != nil {
		return false, fmt.Errorf("keys: %s: %w", p.path, err)
	}
	keys, err := set.Admit()
	switch {
	case err != nil:
		return false, fmt.Errorf("keys: %s: %w", p.path, err)
	case set.Origin == "" || p.set.Origin != "" && set.Origin != p.set.Origin:
		return false, fmt.Errorf("keys: %s: the keys are of another log, or of none", p.path)
	case set.Version < p.set.Version:
		return false, fmt.Errorf("keys: %s: version %d is older than %d, which stays", p.path, set.Version, p.set.Version)
	}
	p.set, p.keys = set, keys
	return true, nil
}

// readEvery is how often the file is checked.
const readEvery = 500 * time.Millisecond

// Follow checks the file periodically until ctx ends.
func (p *PublishedKeys) Follow(ctx context.Context, log *slog.Logger) error {
	logged := p.KeySetVersion()
	failed := ""
	return clock.Loop(ctx, readEvery, func() {
		_, err := p.read()
		switch text := fmt.Sprint(err); {
		case err != nil && text != failed:
			log.ErrorContext(ctx, "the public keys cannot be read; those that were stay", slog.String("error", text))
			failed = text
		case err == nil:
			failed = ""
		}
		if v := p.KeySetVersion(); v != logged {
			logged = v
			log.InfoContext(ctx, "public keys", slog.Int64("version", v))
		}
	})
}

// Key implements intents.Keys. It reads the file again for an unknown key, which may be new.
func (p *PublishedKeys) Key(kid string) (intents.Key, error) {
	k, ok := p.known(kid)
	if !ok {
		if changed, err := p.read(); err == nil && changed {
			k, ok = p.known(kid)
		}
	}
	switch {
	case !ok:
		return k, intents.Refuse(intents.KeyUnknown, "/sig", "no key with this kid is in force")
	case k.Revoked:
		return intents.Key{}, intents.Refuse(intents.KeyRevoked, "/sig", "key is revoked")
	}
	return k, nil
}

func (p *PublishedKeys) known(kid string) (intents.Key, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.keys[kid]
	return k, ok
}

// JWKS implements keydir.KeySet.
func (p *PublishedKeys) JWKS() intents.JWKS {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set
}

// Origin of the log.
func (p *PublishedKeys) Origin() string { return p.JWKS().Origin }

// KeySetVersion implements keydir.KeySet.
func (p *PublishedKeys) KeySetVersion() int64 { return p.JWKS().Version }
