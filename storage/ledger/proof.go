package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api/layout"
	"github.com/transparency-dev/tessera/client"

	"aob.dev/writ/intents"
)

// ErrPending reports that no published checkpoint covers the position yet. The next one
// comes within the checkpoint interval.
var ErrPending = errors.New("ledger: not in a checkpoint yet")

// Inclusion shows that a leaf is at a position of the tree of a checkpoint.
type Inclusion struct {
	Position int64    `json:"position"`
	Leaf     string   `json:"leaf"`       // its bytes
	Hashes   [][]byte `json:"hashes"`     // RFC 6962, section 2.1.1
	Note     string   `json:"checkpoint"` // with its signatures
}

// VerifyInclusion checks an inclusion proof against a verified checkpoint.
func VerifyInclusion(c Checkpoint, position int64, leafHash []byte, hashes [][]byte) error {
	if position < 0 || position >= c.Size {
		return fmt.Errorf("position %d is not in the checkpoint of %d leaves", position, c.Size)
	}
	return proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(position), uint64(c.Size), leafHash, hashes, c.Root) //nolint:gosec // G115: checked above
}

// VerifyConsistency checks that the log of the first checkpoint is the beginning
// of the log of the second. A checkpoint of no leaves is the beginning of every log
// and shows nothing: it is refused.
func VerifyConsistency(first, second Checkpoint, hashes [][]byte) error {
	if first.Size < 1 || first.Size > second.Size {
		return fmt.Errorf("the first checkpoint has %d leaves, the second %d", first.Size, second.Size)
	}
	return proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(first.Size), uint64(second.Size), hashes, first.Root, second.Root) //nolint:gosec // G115: checked above
}

// Reader reads a ledger's directory; its writer need not stop for
// that. Safe for concurrent use.
type Reader struct {
	origin string
	files  client.FileFetcher
	dir    string
}

// NewReader of a directory. Nothing is opened yet.
func NewReader(dir, origin string) *Reader {
	return &Reader{origin: origin, files: client.FileFetcher{Root: dir}, dir: dir}
}

// Checkpoint that is published, verified with one of the log's ledger keys.
func (r *Reader) Checkpoint(ctx context.Context, keys ...intents.Key) (Checkpoint, error) {
	text, err := r.files.ReadCheckpoint(ctx)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("ledger: %w", err)
	}
	c, err := OpenCheckpoint(string(text), r.origin, keys...)
	if err != nil {
		return c, fmt.Errorf("ledger: %w", err)
	}
	return c, nil
}

// CheckpointAt signs the checkpoint that the log had, or could have had, at an
// earlier size.
func (r *Reader) CheckpointAt(ctx context.Context, size int64, key intents.Signer) (Checkpoint, error) {
	root, err := r.root(ctx, size)
	if err != nil {
		return Checkpoint{}, err
	}
	return sign(r.origin, size, root, key)
}

// tile reads a tile as it was at an earlier size: a partial one of today has it
// at its beginning, and the file that it had then may never have been written.
func (r *Reader) tile(ctx context.Context, level, index uint64, p uint8) ([]byte, error) {
	if p == 0 {
		return r.files.ReadTile(ctx, level, index, 0)
	}
	text, err := r.files.ReadCheckpoint(ctx)
	if err != nil {
		return nil, err
	}
	c, err := ReadCheckpoint(string(text))
	if err != nil {
		return nil, err
	}
	tile, err := r.files.ReadTile(ctx, level, index, layout.PartialTileSize(level, index, uint64(c.Size))) //nolint:gosec // G115: not negative
	if err != nil {
		return nil, err
	}
	if n := int(p) * rfc6962.DefaultHasher.Size(); len(tile) > n {
		tile = tile[:n]
	}
	return tile, nil
}

// root of the tree of a size.
func (r *Reader) root(ctx context.Context, size int64) ([]byte, error) {
	if size <= 0 {
		return rfc6962.DefaultHasher.EmptyRoot(), nil
	}
	nodes, err := client.FetchRangeNodes(ctx, uint64(size), r.tile)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	f := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	tree, err := f.NewRange(0, uint64(size), nodes)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return tree.GetRootHash(nil)
}

// Prover makes proofs in the tree of one checkpoint. It caches tiles that it has
// read, a few MiB at the most: use one for neighbouring positions.
// One goroutine at a time.
type Prover struct{ nodes nodes }

// Prover for the tree of a size.
func (r *Reader) Prover(size int64) *Prover {
	return &Prover{nodes{size: uint64(max(size, 0)), read: r.tile, tiles: map[tileID]*tile{}}}
}

// Inclusion is the proof for a position.
func (p *Prover) Inclusion(ctx context.Context, position int64) ([][]byte, error) {
	if position < 0 || uint64(position) >= p.nodes.size {
		return nil, ErrPending
	}
	of, err := proof.Inclusion(uint64(position), p.nodes.size)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return p.prove(ctx, of)
}

// Consistency is the proof that the tree of an earlier size is the beginning of this one.
func (p *Prover) Consistency(ctx context.Context, first int64) ([][]byte, error) {
	if first <= 0 || uint64(first) >= p.nodes.size {
		return nil, nil // nothing to show: RFC 6962 proves neither
	}
	of, err := proof.Consistency(uint64(first), p.nodes.size)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return p.prove(ctx, of)
}

// TileWidth is how many leaves a tile has; the last one may have fewer.
const TileWidth = layout.TileWidth

// tileRange are the leaves of a tile in a tree: from the first on, to before the last.
func tileRange(index, size int64) (from, to uint64, ok bool) {
	if index < 0 || size < 1 || index > (size-1)/TileWidth {
		return 0, 0, false
	}
	from = uint64(index) * TileWidth
	return from, min(from+TileWidth, uint64(size)), true
}

// Tile is the hashes of the leaves of a tile, one after another, and the nodes around them that
// together with these make the root: VerifyTile checks that.
func (p *Prover) Tile(ctx context.Context, index int64) (hashes, around []byte, err error) {
	from, to, ok := tileRange(index, int64(p.nodes.size)) //nolint:gosec // G115: it was one
	if !ok {
		return nil, nil, ErrPending
	}
	t, err := p.nodes.tile(ctx, tileID{0, uint64(index)}) //nolint:gosec // G115: checked above
	if err != nil {
		return nil, nil, fmt.Errorf("ledger: %w", err)
	}
	around = []byte{}
	for _, id := range compact.RangeNodes(to, p.nodes.size, compact.RangeNodes(0, from, nil)) {
		hash, err := p.nodes.node(ctx, id)
		if err != nil {
			return nil, nil, fmt.Errorf("ledger: %w", err)
		}
		around = append(around, hash...)
	}
	return t[0], around, nil
}

// VerifyTile checks that these are the hashes of the leaves of a tile, in the tree of a verified
// checkpoint, by one compact range from its first leaf to its last.
func VerifyTile(c Checkpoint, index int64, hashes, around []byte) error {
	from, to, ok := tileRange(index, c.Size)
	size := uint64(c.Size) //nolint:gosec // G115: checked above
	width, before, after := to-from, compact.RangeSize(0, from), compact.RangeSize(to, size)
	if !ok || uint64(len(hashes)) != width*sha256.Size || len(around) != (before+after)*sha256.Size {
		return fmt.Errorf("no tile %d of a tree of %d leaves", index, c.Size)
	}
	nodes := slices.Collect(slices.Chunk(around, sha256.Size))
	f := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	tree, err := f.NewRange(0, from, nodes[:before:before]) // a range appends to it
	if err != nil {
		return err
	}
	for leaf := range slices.Chunk(hashes, sha256.Size) {
		if err := tree.Append(leaf, nil); err != nil {
			return err
		}
	}
	rest, err := f.NewRange(to, size, nodes[before:])
	if err == nil {
		err = tree.AppendRange(rest, nil)
	}
	if err != nil {
		return err
	}
	root, err := tree.GetRootHash(nil)
	if err == nil && !bytes.Equal(root, c.Root) {
		err = fmt.Errorf("tile %d is not that of the checkpoint", index)
	}
	return err
}

// prove makes a proof of the nodes that it consists of.
func (p *Prover) prove(ctx context.Context, of proof.Nodes) ([][]byte, error) {
	hashes := make([][]byte, len(of.IDs))
	for i, id := range of.IDs {
		var err error
		if hashes[i], err = p.nodes.node(ctx, id); err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
	}
	return of.Rehash(hashes, rfc6962.DefaultHasher.HashChildren)
}

// Inclusion proves one position against a checkpoint.
func (r *Reader) Inclusion(ctx context.Context, position int64, c Checkpoint) (Inclusion, error) {
	if position >= c.Size {
		return Inclusion{}, ErrPending
	}
	hashes, err := r.Prover(c.Size).Inclusion(ctx, position)
	if err != nil {
		return Inclusion{}, err
	}
	leaves, err := r.Leaves(ctx, position, position+1, c.Size)
	if err != nil {
		return Inclusion{}, err
	}
	return Inclusion{Position: position, Leaf: string(leaves[0]), Hashes: hashes, Note: c.Note}, nil
}

// Leaves of a range, in a tree of a size. Ranges of one bundle of 256 are the cheapest.
func (r *Reader) Leaves(ctx context.Context, from, to, size int64) ([][]byte, error) {
	if from < 0 || to > size || from > to {
		return nil, ErrPending
	}
	var out [][]byte
	for from < to {
		index := from / layout.EntryBundleWidth
		b, err := client.GetEntryBundle(ctx, r.files.ReadEntryBundle, uint64(index), uint64(size)) //nolint:gosec // G115: not negative
		if err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
		first := from - index*layout.EntryBundleWidth
		last := min(to-index*layout.EntryBundleWidth, layout.EntryBundleWidth)
		if int64(len(b.Entries)) < last {
			return nil, fmt.Errorf("ledger: entry bundle %d has %d leaves, not %d", index, len(b.Entries), last)
		}
		out = append(out, b.Entries[first:last]...)
		from += last - first
	}
	return out, nil
}

// resources are the paths of C2SP tlog-tiles; nothing else of the directory is served.
var resources = regexp.MustCompile(`^(checkpoint|tile/(entries|[0-9]|[1-5][0-9]|6[0-3])/(x[0-9]{3}/)*[0-9]{3}(\.p/[0-9]{1,3})?)$`)

// Handler serves the log to any tlog client (C2SP tlog-tiles): checkpoint and
// tile/…, relative to where it is mounted. No credential is needed: leaves are
// commitments.
func (r *Reader) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name := req.URL.Path
		if len(name) > 0 && name[0] == '/' {
			name = name[1:]
		}
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		if !resources.MatchString(name) {
			http.Error(w, "no such resource", http.StatusNotFound)
			return
		}
		root, err := os.OpenRoot(r.dir)
		if err != nil {
			http.Error(w, "no such resource", http.StatusNotFound)
			return
		}
		defer func() { _ = root.Close() }() // only read
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		if name == "checkpoint" {
			h.Set("Content-Type", "text/plain; charset=utf-8")
			h.Set("Cache-Control", "no-cache")
		} else {
			h.Set("Content-Type", "application/octet-stream")
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		http.ServeFileFS(w, req, root.FS(), name) //nolint:gosec // G703: the name matches resources, below root
	})
}

// Proof of a position as people get it; published is false until a checkpoint covers it.
func (l *Ledger) Proof(ctx context.Context, position int64) (doc json.RawMessage, published bool, err error) {
	c, err := l.Checkpoint(ctx, l.Keys()...)
	if err != nil {
		return nil, false, err
	}
	in, err := l.Inclusion(ctx, position, c)
	if errors.Is(err, ErrPending) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	doc, err = json.Marshal(in)
	return doc, true, err
}
