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

// PollInterval is how often a bundle server is asked.
const PollInterval = 10 * time.Second

// Feed is where the policy comes from: one tree, and further ones that only
// tighten it. Changes are taken up while it is followed.
type Feed struct {
	Main       Place
	Extensions []Extension
	Poll       time.Duration // 0: PollInterval

	mu   sync.Mutex // guards last
	last map[string]fetched
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

// fetched is what a place gave.
type fetched struct {
	Tree
	digest string
	etag   string
}

func (p Place) remote() bool {
	return strings.HasPrefix(p.At, "https://") || strings.HasPrefix(p.At, "http://")
}

func (p Place) bundled() bool { return p.remote() || strings.HasSuffix(p.At, ".tar.gz") }

// Engine loads the places and compiles what they give.
func (f *Feed) Engine(ctx context.Context) (*Engine, error) {
	tree, err := f.Load(ctx)
	if err != nil {
		return nil, err
	}
	return NewTree(ctx, tree)
}

// Load reads the places and makes one tree of them. A bundle that is older than
// the one that its place gave before is refused, and so is another content under
// the same revision.
func (f *Feed) Load(ctx context.Context) (Tree, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := make(map[string]fetched, len(f.Extensions)+1)
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

// fetch reads one place and holds it to what it gave before. The lock is held.
func (f *Feed) fetch(ctx context.Context, p Place) (fetched, error) {
	before, known := f.last[p.At]
	var got fetched
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
		return fetched{}, err
	}
	got.digest = got.Source.Digest()
	switch {
	case !known || !p.bundled():
	case got.Revision < before.Revision:
		return fetched{}, fmt.Errorf("%s: revision %d after %d: %w", p.At, got.Revision, before.Revision, ErrOlder)
	case got.Revision == before.Revision && got.digest != before.digest:
		return fetched{}, fmt.Errorf("%s: revision %d has another content than before: %w", p.At, got.Revision, ErrOlder)
	}
	return got, nil
}

// open verifies a bundle by the key that the configuration names.
func (p Place) open(raw []byte) (Tree, error) {
	if p.Key == nil {
		return Tree{}, errors.New("a bundle needs the key that signs it")
	}
	return ReadBundle(raw, p.Key)
}

// Follow loads the feed anew whenever a place may have changed, until ctx ends,
// and puts it in force. Every attempt is reported: the engine now in force, or
// why the old one stays. A tree whose digest is in force already is no change.
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

// rest is how long a directory or a file must stay as it is before it is loaded:
// editors and git write several files for one change.
const rest = 250 * time.Millisecond

// look is what was last seen of a place.
type look struct {
	Place
	next   time.Time // of a bundle server: when to ask again
	seen   string    // of others: the content at the last look
	loaded string    // and that which was loaded
}

// changed says whether the place may have another content: a bundle server after the
// interval, all else when its content differs and was the same at two looks.
func (l *look) changed(every time.Duration) bool {
	switch now := time.Now(); {
	case l.At == "" || now.Before(l.next):
		return false
	case l.remote():
		l.next = now.Add(every)
		return true
	}
	before := l.seen
	l.seen = l.content()
	if l.seen != before || l.seen == l.loaded {
		return false
	}
	l.loaded = l.seen
	return true
}

// content of a directory or a file: its digest, or why it cannot be read.
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
