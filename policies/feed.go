package policies

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
)

// PollInterval is the interval between requests to a bundle server.
const PollInterval = 10 * time.Second

// Feed is the source of the policy: one tree, and further ones that only tighten it. Follow
// applies its changes.
type Feed struct {
	Main       Place
	Extensions []Extension
	Poll       time.Duration // 0: PollInterval

	mu   sync.Mutex // guards last
	last map[string]fetchResult
}

// Extension is a further tree (Extend).
type Extension struct {
	Name string
	Place
}

// Place of a tree: a directory, a bundle file (its name ends in .tar.gz), or the
// URL of a bundle on an OPA bundle server. Empty: the embedded tree.
type Place struct {
	At    string
	Key   ed25519.PublicKey // that signs the bundle; a bundle without one is refused
	Token string            // bearer token for the URL
}

// fetchResult is the content of a place.
type fetchResult struct {
	Tree
	digest string
	etag   string
}

func (p Place) remote() bool {
	return strings.HasPrefix(p.At, "https://") || strings.HasPrefix(p.At, "http://")
}

func (p Place) bundled() bool { return p.remote() || strings.HasSuffix(p.At, ".tar.gz") }

// Engine loads the places and compiles their trees.
func (f *Feed) Engine(ctx context.Context) (*Engine, error) {
	tree, err := f.Load(ctx)
	if err != nil {
		return nil, err
	}
	return NewTree(ctx, tree)
}

// Load reads the places and makes one tree of them. A bundle that is older than the previous one
// of its place is refused, and so is other content under the same revision.
func (f *Feed) Load(ctx context.Context) (Tree, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := make(map[string]fetchResult, len(f.Extensions)+1)
	main, err := f.fetch(ctx, f.Main)
	if err != nil {
		return Tree{}, err
	}
	got[f.Main.At] = main
	more := make(map[string]Source, len(f.Extensions))
	for _, x := range f.Extensions {
		tree, err := f.fetch(ctx, x.Place)
		if err != nil {
			return Tree{}, fmt.Errorf("extension %s: %w", x.Name, err)
		}
		got[x.At], more[x.Name] = tree, tree.Source.Deciding()
	}
	source, err := Extend(main.Source, more)
	if err != nil {
		return Tree{}, err
	}
	f.last = got
	return Tree{Source: source, Revision: main.Revision}, nil
}

// fetch reads one place and compares it with its previous content. The lock is held.
func (f *Feed) fetch(ctx context.Context, p Place) (fetchResult, error) {
	before, known := f.last[p.At]
	var got fetchResult
	var err error
	switch {
	case p.At == "":
		got.Source = Embedded()
	case p.remote():
		got, err = p.get(ctx, before)
	case p.bundled():
		var raw []byte
		if raw, err = os.ReadFile(p.At); err == nil {
			got.Tree, err = p.open(raw)
		}
	default:
		got.Source, err = ReadDir(p.At)
	}
	if err != nil {
		return fetchResult{}, err
	}
	got.digest = got.Source.Digest()
	switch {
	case !known || !p.bundled():
	case got.Revision < before.Revision:
		return fetchResult{}, fmt.Errorf("%s: revision %d after %d: %w", p.At, got.Revision, before.Revision, ErrOlder)
	case got.Revision == before.Revision && got.digest != before.digest:
		return fetchResult{}, fmt.Errorf("%s: revision %d has another content than before: %w", p.At, got.Revision, ErrOlder)
	}
	return got, nil
}

// open verifies a bundle with the configured key.
func (p Place) open(raw []byte) (Tree, error) {
	if p.Key == nil {
		return Tree{}, errors.New("a bundle needs the key that signs it")
	}
	return ReadBundle(raw, p.Key)
}

// Follow reloads the feed whenever a place may have changed, until ctx ends, and puts it in
// force. Every attempt is reported: the engine now in force, or why the old one stays. A tree
// whose digest is already in force is no change.
func (f *Feed) Follow(ctx context.Context, live *Live, prove Proof, report func(*Engine, error)) error {
	every := cmp.Or(f.Poll, PollInterval)
	places := []*look{{Place: f.Main}}
	for _, x := range f.Extensions {
		places = append(places, &look{Place: x.Place})
	}
	_ = clock.Every(ctx, min(rest, every), func() bool {
		changed := false
		for _, l := range places {
			changed = l.changed(every) || changed
		}
		if changed {
			f.reload(ctx, live, prove, report)
		}
		return false
	}) // its only error is that ctx has ended
	return nil
}

func (f *Feed) reload(ctx context.Context, live *Live, prove Proof, report func(*Engine, error)) {
	tree, err := f.Load(ctx)
	switch now := live.Engine(); {
	case ctx.Err() != nil:
	case err != nil:
		live.refuse.Add(1)
		report(nil, err)
	case tree.Source.Digest() == now.Digest() && tree.Revision == now.Revision():
	default:
		report(live.ReplaceTree(ctx, tree, prove))
	}
}

// rest is how long a directory or a file must be unchanged before it is loaded: editors and git
// write several files for one change.
const rest = 250 * time.Millisecond

// look is the last observed state of a place.
type look struct {
	Place
	next   time.Time // of a bundle server: time of the next request
	found  string    // of others: the content when last read
	loaded string    // the content that was loaded
}

// changed reports whether the place may have other content: a bundle server after the interval,
// others when the content differs and was the same twice in a row.
func (l *look) changed(every time.Duration) bool {
	switch now := time.Now(); {
	case l.At == "" || now.Before(l.next):
		return false
	case l.remote():
		l.next = now.Add(every)
		return true
	}
	before := l.found
	l.found = l.content()
	if l.found != before || l.found == l.loaded {
		return false
	}
	l.loaded = l.found
	return true
}

// content of a directory or a file: its digest, or the read error.
func (p Place) content() string {
	if p.bundled() {
		raw, err := os.ReadFile(p.At)
		if err != nil {
			return err.Error()
		}
		return intents.Digest(raw)
	}
	s, err := ReadDir(p.At)
	if err != nil {
		return err.Error()
	}
	return s.Digest()
}
