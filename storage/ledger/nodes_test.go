package ledger

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"
)

// hashedLog stores the hashes of a log as the Go checksum database's tlog does.
type hashedLog []tlog.Hash

func (l hashedLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		out[i] = l[at]
	}
	return out, nil
}

func newHashedLog(t *testing.T, size int64) hashedLog {
	t.Helper()
	var l hashedLog
	for n := range size {
		hashes, err := tlog.StoredHashes(n, binary.BigEndian.AppendUint64(nil, uint64(n)), l)
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, hashes...)
	}
	return l
}

// prover reads tiles of the log; it counts how often.
func (l hashedLog) prover(size int64, reads *int) *Prover {
	return &Prover{nodes{size: uint64(size), tiles: map[tileID]*tile{}, read: func(_ context.Context, level, index uint64, p uint8) ([]byte, error) {
		*reads++
		width := int(p)
		if p == 0 {
			width = 256
		}
		return tlog.ReadTileData(tlog.Tile{H: 8, L: int(level), N: int64(index), W: width}, l)
	}}}
}

// TestProver: the proofs are those that tlog makes, of trees with and without
// partial tiles on every level; and a tile is read once for all its leaves.
func TestProver(t *testing.T) {
	const most = 70_000 // three levels of tiles
	l := newHashedLog(t, most)
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int64{1, 2, 3, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537, most} {
		positions := []int64{0, size / 2, size - 1}
		for range 50 {
			positions = append(positions, random.Int64N(size))
		}
		reads := 0
		p := l.prover(size, &reads)
		for _, at := range positions {
			want, err := tlog.ProveRecord(size, at, l)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Inclusion(t.Context(), at)
			if err != nil {
				t.Fatalf("%d of %d: %v", at, size, err)
			}
			if diff := cmp.Diff(bare(want), got); diff != "" {
				t.Fatalf("%d of %d: %s", at, size, diff)
			}
			if at == 0 || at == size {
				continue
			}
			way, err := tlog.ProveTree(size, at, l)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = p.Consistency(t.Context(), at); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(bare(way), got); diff != "" {
				t.Fatalf("from %d to %d: %s", at, size, diff)
			}
		}
	}

	reads := 0
	p := l.prover(most, &reads)
	for at := range int64(most) {
		if _, err := p.Inclusion(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	if tiles := most/256 + 1; reads > tiles+tiles/64+8 {
		t.Errorf("%d tiles were read for proofs of %d leaves in order", reads, most)
	}
	if len(p.nodes.tiles) > maxTiles {
		t.Errorf("%d tiles are kept", len(p.nodes.tiles))
	}
}

func bare[T ~[]tlog.Hash](hashes T) [][]byte {
	out := make([][]byte, len(hashes))
	for i, h := range hashes {
		out[i] = h[:]
	}
	return out
}

// TestProverBadTiles: a tile that is cut short or too long is an error.
func TestProverBadTiles(t *testing.T) {
	for _, bytes := range []int{0, 31, 32, 33, 255 * 32, 256*32 - 1, 257 * 32, 1 << 20} {
		p := &Prover{nodes{size: 300, tiles: map[tileID]*tile{}, read: func(context.Context, uint64, uint64, uint8) ([]byte, error) { return make([]byte, bytes), nil }}}
		if proof, err := p.Inclusion(t.Context(), 20); err == nil {
			t.Errorf("tiles of %d bytes: %d hashes", bytes, len(proof))
		}
	}
}

// TestTile: the tiles of trees of any size are those of their roots, in one way alone.
func TestTile(t *testing.T) {
	l := newHashedLog(t, 70_000)
	for _, size := range []int64{1, 2, 255, 256, 257, 511, 512, 513, 1000, 65_536, 65_537, 70_000} {
		root, err := tlog.TreeHash(size, l)
		if err != nil {
			t.Fatal(err)
		}
		c := Checkpoint{Size: size, Root: root[:]}
		p := l.prover(size, new(int))
		last := (size - 1) / TileWidth
		for _, index := range []int64{0, 1, last / 2, last - 1, last} {
			if index < 0 || index > last {
				continue
			}
			hashes, around, err := p.Tile(t.Context(), index)
			if err != nil {
				t.Fatal(err)
			}
			if err := VerifyTile(c, index, hashes, around); err != nil {
				t.Fatalf("tile %d of %d: %v", index, size, err)
			}
			for name, wrong := range map[string]error{
				"another index": VerifyTile(c, index+1, hashes, around),
				"index below":   VerifyTile(c, index-1, hashes, around),
				"cut":           VerifyTile(c, index, hashes[:len(hashes)-32], around),
				"longer":        VerifyTile(c, index, append(hashes[:len(hashes):len(hashes)], hashes[:32]...), around),
				"more around":   VerifyTile(c, index, hashes, append(around[:len(around):len(around)], hashes[:32]...)),
				"half a hash":   VerifyTile(c, index, hashes[:len(hashes)-1], around),
				"another root":  VerifyTile(Checkpoint{Size: size, Root: make([]byte, 32)}, index, hashes, around),
				"none":          VerifyTile(Checkpoint{Root: c.Root}, index, hashes, around),
			} {
				if wrong == nil {
					t.Errorf("tile %d of %d: %s", index, size, name)
				}
			}
			for _, of := range [][]byte{hashes, around} {
				for at := 0; at < len(of); at += 32 {
					of[at] ^= 1
					if VerifyTile(c, index, hashes, around) == nil {
						t.Fatalf("tile %d of %d: another hash", index, size)
					}
					of[at] ^= 1
				}
			}
		}
		if _, _, err := p.Tile(t.Context(), last+1); err == nil {
			t.Errorf("tile %d of %d leaves", last+1, size)
		}
	}
}
