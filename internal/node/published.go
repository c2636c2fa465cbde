package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/keydir"
)

// jwksName is the file with the public keys of a cell, in the directory of each role.
const jwksName = "jwks.json"

// published is what a role's directory says of the log's keys, for processes whose key is
// theirs alone. The file is read again when it changes.
type published struct {
	path string

	mu   sync.Mutex // guards what follows
	seen string
	set  intents.JWKS
	keys map[string]intents.Key
}

var _ trust = (*published)(nil)

// openPublished reads the file of the first of some directories.
func openPublished(dirs []string) (*published, error) {
	if len(dirs) == 0 {
		return nil, errors.New("keys: name the directory of the role's keys with --keys: writ cell create makes them")
	}
	p := &published{path: filepath.Join(dirs[0], jwksName)}
	_, err := p.read()
	return p, err
}

// read the file if it has changed. What cannot be read changes nothing.
func (p *published) read() (changed bool, err error) {
	info, err := os.Stat(p.path)
	if err != nil {
		return false, fmt.Errorf("keys: %w: writ cell create makes it", err)
	}
	seen := fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == seen {
		return false, nil
	}
	raw, err := os.ReadFile(p.path)
	if err != nil {
		return false, fmt.Errorf("keys: %w", err)
	}
	p.seen = seen
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

// follow reads the file again and again until ctx ends.
func (p *published) follow(ctx context.Context, log *slog.Logger) error {
	logged := p.KeySetVersion()
	failed := ""
	_ = clock.Every(ctx, lookEvery, func() bool {
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

// Key implements intents.Keys. A key that is not known may have come just now.
func (p *published) Key(kid string) (intents.Key, error) {
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

func (p *published) known(kid string) (intents.Key, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.keys[kid]
	return k, ok
}

// JWKS implements trust.
func (p *published) JWKS() intents.JWKS {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set
}

// Origin implements trust.
func (p *published) Origin() string { return p.JWKS().Origin }

// KeySetVersion implements trust.
func (p *published) KeySetVersion() int64 { return p.JWKS().Version }

// heldIn reads the private keys of some directories.
func heldIn(dirs []string) (keydir.Held, error) {
	out := keydir.Held{}
	for _, dir := range dirs {
		held, err := keydir.LoadSome(dir)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, held)
	}
	return out, nil
}
