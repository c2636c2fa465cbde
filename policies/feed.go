package policies

import (
	"context"
	"fmt"
	"time"

	"aob.dev/writ/internal/clock"
)

// Feed is the source of the policy: one tree, and further ones that only tighten it. Follow
// applies its changes.
type Feed struct {
	Dir        string // directory of the tree; empty: the embedded one
	Extensions []Extension
}

// Extension is a further tree (Extend).
type Extension struct{ Name, Dir string }

// Engine reads the directories and compiles their trees.
func (f Feed) Engine() (*Engine, error) {
	source, err := f.Load()
	if err != nil {
		return nil, err
	}
	return New(source)
}

// Load reads the directories and makes one tree of them.
func (f Feed) Load() (Source, error) {
	main, err := Embedded(), error(nil)
	if f.Dir != "" {
		main, err = ReadDir(f.Dir)
	}
	if err != nil {
		return nil, err
	}
	more := make(map[string]Source, len(f.Extensions))
	for _, x := range f.Extensions {
		tree, err := ReadDir(x.Dir)
		if err != nil {
			return nil, fmt.Errorf("extension %s: %w", x.Name, err)
		}
		more[x.Name] = tree.Deciding()
	}
	return Extend(main, more)
}

// rest is how long directories must be unchanged before they are loaded: editors and git write
// several files for one change.
const rest = 250 * time.Millisecond

// Follow reloads the feed whenever its directories have changed, until ctx ends, and puts it in
// force. Every attempt is reported: the engine now in force, or why the old one stays. A tree
// whose digest is already in force is no change.
func (f Feed) Follow(ctx context.Context, live *Live, prove Proof, report func(*Engine, error)) error {
	if f.Dir == "" && len(f.Extensions) == 0 {
		<-ctx.Done()
		return nil
	}
	var found, loaded string
	_ = clock.Every(ctx, rest, func() bool {
		source, err := f.Load()
		before := found
		if found = source.Digest(); err != nil {
			found = err.Error()
		}
		if found == before && found != loaded {
			loaded = found
			f.reload(ctx, live, source, err, prove, report)
		}
		return false
	}) // its only error is that ctx has ended
	return nil
}

func (f Feed) reload(ctx context.Context, live *Live, source Source, err error, prove Proof, report func(*Engine, error)) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		live.refuse.Add(1)
		report(nil, err)
	case source.Digest() != live.Engine().Digest():
		report(live.ReplaceTree(ctx, Tree{Source: source}, prove))
	}
}
