package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/keydir"
)

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
	_ = clock.Every(ctx, readEvery, func() bool {
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
		return false
	})
	return nil
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
