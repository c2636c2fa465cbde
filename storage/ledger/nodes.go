package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api/layout"
)

// maxTiles is how many tiles, of 16 KiB each, nodes caches; then all are read
// again. Proofs of neighbours need about one for every level of tiles.
const maxTiles = 256

// nodes are the hashes of the tree of one size. The inside of a tile is hashed
// once for the tile, so that proofs of neighbouring leaves cost
// about one hash each. One goroutine at a time.
type nodes struct {
	size  uint64
	read  func(ctx context.Context, level, index uint64, p uint8) ([]byte, error)
	tiles map[tileID]*tile
}

type tileID struct{ level, index uint64 }

// tile has the hashes of every complete subtree of a tile, from its own
// nodes up to its root, one level after another.
type tile [layout.TileHeight][]byte

// node of the tree, which must be complete at its size.
func (n *nodes) node(ctx context.Context, id compact.NodeID) ([]byte, error) {
	tileLevel, index, level, at := layout.NodeCoordsToTileAddress(uint64(id.Level), id.Index)
	t, err := n.tile(ctx, tileID{tileLevel, index})
	if err != nil {
		return nil, err
	}
	from := at * sha256.Size
	if from+sha256.Size > uint64(len(t[level])) {
		return nil, fmt.Errorf("tile %d/%d has no node %d of level %d", tileLevel, index, at, level)
	}
	return t[level][from : from+sha256.Size : from+sha256.Size], nil
}

func (n *nodes) tile(ctx context.Context, id tileID) (*tile, error) {
	if t := n.tiles[id]; t != nil {
		return t, nil
	}
	p := layout.PartialTileSize(id.level, id.index, n.size)
	leaves, err := n.read(ctx, id.level, id.index, p)
	if err != nil {
		return nil, err
	}
	width := int(p)
	if p == 0 {
		width = layout.TileWidth
	}
	if len(leaves) != width*sha256.Size {
		return nil, fmt.Errorf("tile %d/%d has %d bytes, not %d nodes", id.level, id.index, len(leaves), width)
	}
	t := &tile{leaves}
	for level := 1; level < len(t); level++ {
		t[level] = parents(t[level-1])
	}
	if len(n.tiles) >= maxTiles {
		clear(n.tiles)
	}
	n.tiles[id] = t
	return t, nil
}

// parents of complete pairs of nodes.
func parents(below []byte) []byte {
	out := make([]byte, 0, len(below)/2)
	for pair := range slices.Chunk(below, 2*sha256.Size) {
		if len(pair) == 2*sha256.Size {
			out = append(out, rfc6962.DefaultHasher.HashChildren(pair[:sha256.Size], pair[sha256.Size:])...)
		}
	}
	return out
}
