// Package keydir keeps the private keys of one data directory: a PEM file per
// role, mode 0600, in a directory of mode 0700.
package keydir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aob.dev/writ/intents"
)

// Roles whose keys a data directory holds. The operator is "local" of system.
var Roles = []intents.Role{
	intents.RoleRoot, intents.RoleGateway, intents.RoleManager, intents.RolePlanner, intents.RoleWorkflow,
	intents.RoleOperator, intents.RoleRouter, intents.RoleLedger,
}

// Keys of a data directory by role.
type Keys map[intents.Role]intents.Signer

// Create makes the keys that are missing. It is for a first start only, before
// the genesis: a crash in it leaves some keys, and the next start makes the rest.
// A key is written under another name and gets its own when it is whole and
// durable; all are durable when Create returns.
func Create(dir string) (Keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, role := range Roles {
		path := file(dir, role)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		s, err := intents.GenerateSigner(role)
		if err != nil {
			return nil, err
		}
		if err := writeWhole(path, s); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(syncDir(dir), syncDir(filepath.Dir(dir))); err != nil {
		return nil, err
	}
	return Load(dir)
}

// writeWhole gives a key its name in one step. A crash before it leaves a part
// under another name, which the next start replaces.
func writeWhole(path string, s intents.Signer) error {
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := intents.WriteKey(part, s); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // G304: the data directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load reads the keys. The root key may be gone: it belongs offline.
func Load(dir string) (Keys, error) {
	keys := make(Keys, len(Roles))
	for _, role := range Roles {
		s, err := intents.ReadKey(file(dir, role), role)
		if errors.Is(err, fs.ErrNotExist) && role == intents.RoleRoot {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		keys[role] = s
	}
	return keys, nil
}

func file(dir string, role intents.Role) string { return filepath.Join(dir, string(role)+".pem") }

// KeySet is version 1 of the key set: every key but the root's.
func (k Keys) KeySet() intents.KeySet {
	set := intents.KeySet{Version: 1}
	for _, role := range Roles {
		if role == intents.RoleRoot {
			continue
		}
		key := k[role].VerificationKey()
		if role == intents.RoleOperator {
			key.Subject, key.Tenant = "local", "system"
		}
		set.Keys = append(set.Keys, key.ToJWK())
	}
	return set
}
