package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math/bits"

	"aob.dev/writ/storage/ledger"
)

// errNotIncluded: the leaf that follows from a line is not the log's.
var errNotIncluded = errors.New("it is not the record that the log has at this position")

// climber verifies inclusion proofs of leaves that stand near each other. From a
// leaf it climbs only to where its path meets that of the leaf before: what is
// above has been hashed up to the root with that one, so that it only has to be
// the same. It takes exactly the proofs that ledger.VerifyInclusion takes. One
// goroutine uses it.
type climber struct {
	log   ledger.Checkpoint
	at    int64
	inner int      // levels below the right border of the tree
	path  [][]byte // of the last leaf: the node of its own at each inner level
	proof []byte   // its siblings, level by level; nil: there was none
}

func (c *climber) includes(it *item) bool {
	if c.met(it.position, it.hash, it.proof) {
		return true
	}
	hashes, err := splitProof(it.proof)
	if err != nil || ledger.VerifyInclusion(c.log, it.position, it.hash, hashes) != nil {
		return false
	}
	c.at, c.proof, c.inner = it.position, it.proof, innerLevels(it.position, c.log.Size)
	c.path = append(c.path[:0], it.hash)
	for level := range c.inner {
		c.path = append(c.path, c.parent(level, it.position, c.path[level], it.proof))
	}
	return true
}

// met says that the leaf's path meets the last one's, and goes on as that did.
func (c *climber) met(at int64, leaf, proof []byte) bool {
	if c.proof == nil || len(proof) != len(c.proof) || at == c.at || at < 0 || at >= c.log.Size {
		return false
	}
	meet := bits.Len64(uint64(at^c.at)) - 1 //nolint:gosec // G115: neither is negative
	if innerLevels(at, c.log.Size) != c.inner || meet >= c.inner {
		return false
	}
	own := make([][]byte, 1, meet+1)
	own[0] = leaf
	for level := range meet {
		own = append(own, c.parent(level, at, own[level], proof))
	}
	here, above := meet*hashSize, (meet+1)*hashSize
	if !bytes.Equal(own[meet], c.proof[here:above]) || !bytes.Equal(proof[here:above], c.path[meet]) || !bytes.Equal(proof[above:], c.proof[above:]) {
		return false
	}
	c.at, c.proof = at, proof
	copy(c.path, own)
	return true
}

// innerLevels of a leaf's path are those with a sibling on either side; above
// them all siblings are on the left.
func innerLevels(at, size int64) int {
	return bits.Len64(uint64(at ^ (size - 1))) //nolint:gosec // G115: neither is negative
}

// parent of a node on the path of a leaf (RFC 6962, section 2.1).
func (c *climber) parent(level int, at int64, node, proof []byte) []byte {
	left, right := node, proof[level*hashSize:(level+1)*hashSize]
	if at>>level&1 == 1 {
		left, right = right, left
	}
	var both [1 + 2*hashSize]byte
	both[0] = 1
	copy(both[1:], left)
	copy(both[1+hashSize:], right)
	sum := sha256.Sum256(both[:])
	return sum[:]
}
