package audit

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"aob.dev/writ/storage/ledger"
)

// TestClimber: in trees of any size, over any run of positions, it takes what
// ledger.VerifyInclusion takes, and nothing with a bit changed.
func TestClimber(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for size := int64(1); size <= 70; size++ {
		leaves := make([][]byte, size)
		tree := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
		nodes := map[compact.NodeID][]byte{}
		keep := func(id compact.NodeID, hash []byte) { nodes[id] = hash }
		for i := range leaves {
			leaves[i] = rfc6962.DefaultHasher.HashLeaf([]byte{byte(i)})
			if err := tree.Append(leaves[i], keep); err != nil {
				t.Fatal(err)
			}
		}
		root, err := tree.GetRootHash(keep)
		if err != nil {
			t.Fatal(err)
		}
		c := climber{log: ledger.Checkpoint{Size: size, Root: root}}
		short := 0
		for at := range size {
			if at > 0 && random.IntN(5) == 0 {
				continue // records may be left out
			}
			need, err := proof.Inclusion(uint64(at), uint64(size))
			if err != nil {
				t.Fatal(err)
			}
			var hashes [][]byte
			for _, id := range need.IDs {
				hashes = append(hashes, nodes[id])
			}
			if hashes, err = need.Rehash(hashes, rfc6962.DefaultHasher.HashChildren); err != nil {
				t.Fatal(err)
			}
			it := &item{position: at, hash: leaves[at], proof: join(hashes)}
			for range 4 {
				changed := &item{position: at, hash: bytes.Clone(it.hash), proof: bytes.Clone(it.proof)}
				if n := random.IntN(len(it.proof) + hashSize); n < hashSize {
					changed.hash[n] ^= 4
				} else {
					changed.proof[n-hashSize] ^= 4
				}
				if c.includes(changed) {
					t.Fatalf("leaf %d of %d: changed and taken", at, size)
				}
			}
			if c.met(at, it.hash, it.proof) {
				short++
			} else if !c.includes(it) {
				t.Fatalf("leaf %d of %d is not taken", at, size)
			}
			if c.includes(&item{position: at + 1, hash: it.hash, proof: it.proof}) {
				t.Fatalf("leaf %d of %d is taken at the next position", at, size)
			}
		}
		if size > 8 && short == 0 {
			t.Errorf("%d leaves: no proof was cut short", size)
		}
	}
}
