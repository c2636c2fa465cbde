package ledger

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/durable"
)

// tagInfo separates tag keys from whatever else is ever derived from the secret.
const tagInfo = "writ ledger tenant tag v1\n"

const secretSize = 32

// Tags makes tenants' tags: leaves of one tenant have one tag, and only a holder
// of the tenant's tag key can tell which tenant that is. Every tenant's key is
// derived from one random secret, so disclosing one says nothing about the others.
//
// Safe for concurrent use.
type Tags struct {
	secret []byte
	origin string
	cache  *tagCache
}

// tagCache are the tags of requested tenants, so that a leaf costs no key
// derivation.
type tagCache struct {
	mu   sync.Mutex // guards tags
	tags map[string]string
}

// NewTags of a log. The secret has 32 bytes.
func NewTags(secret []byte, origin string) Tags {
	return Tags{secret, origin, &tagCache{tags: map[string]string{}}}
}

// Key is the tag key of a tenant.
func (t Tags) Key(tenant string) ([]byte, error) {
	return hkdf.Key(sha256.New, t.secret, nil, tagInfo+tenant, sha256.Size)
}

// Tag of a tenant.
func (t Tags) Tag(tenant string) (string, error) {
	t.cache.mu.Lock()
	defer t.cache.mu.Unlock()
	if tag, ok := t.cache.tags[tenant]; ok {
		return tag, nil
	}
	key, err := t.Key(tenant)
	if err != nil {
		return "", err
	}
	if len(t.cache.tags) >= maxTenants {
		clear(t.cache.tags)
	}
	tag := Tag(key, t.origin)
	t.cache.tags[strings.Clone(tenant)] = tag
	return tag, nil
}

// Tag is HMAC-SHA-256(tag key, origin) in hex.
func Tag(key []byte, origin string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(origin)) // never fails
	return hex.EncodeToString(m.Sum(nil))
}

// CreateSecret reads the tag secret of a data directory, and makes it where
// there is none, mode 0600. It is durable when CreateSecret returns; a crash in
// it leaves a part under another name, which the next start replaces. Losing it
// loses which leaves are whose and which intents were accepted before (storage.KeySecret),
// and no proof.
func CreateSecret(path string) ([]byte, error) {
	secret, err := ReadSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = make([]byte, secretSize)
	_, _ = rand.Read(secret) // crypto/rand.Read never fails
	return secret, durable.Write(path, []byte(hex.EncodeToString(secret)+"\n"))
}

// ReadSecret reads the tag secret, refusing a file that others can read.
func ReadSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !intents.Private(info.Mode()) {
		return nil, fmt.Errorf("%s: readable by others (mode %04o): chmod 600 it", path, info.Mode().Perm())
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the data directory
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(string(raw[:max(len(raw)-1, 0)]))
	if err != nil || len(secret) != secretSize {
		return nil, fmt.Errorf("%s: not a tag secret", path)
	}
	return secret, nil
}
