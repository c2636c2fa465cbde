package judge

import "aob.dev/writ/storage"

// Taken is a key that the record at a position took.
type Taken struct {
	Key      storage.Key
	Position int64
}

// Committed says where the records of a commit are.
type Committed struct {
	ID    string
	First int64
	N     int
}

func (c Committed) result() storage.Result {
	positions := make([]int64, c.N)
	for i := range positions {
		positions[i] = c.First + int64(i)
	}
	return storage.Result{Verdict: storage.Won, Positions: positions, Winner: storage.Nobody}
}

// RememberCommits is how many commit IDs are known at any time. A retry comes
// within seconds; 65,536 commits are more than one second at full speed.
const RememberCommits = 1 << 16

// recent remembers the last commits by ID.
type recent struct {
	byID map[string]Committed
	ring []string // the IDs in order of arrival, from at on
	at   int
}

func newRecent() *recent { return &recent{byID: make(map[string]Committed)} }

func (r *recent) add(c Committed) {
	if len(r.ring) < RememberCommits {
		r.ring = append(r.ring, c.ID)
	} else {
		delete(r.byID, r.ring[r.at])
		r.ring[r.at] = c.ID
		r.at = (r.at + 1) % RememberCommits
	}
	r.byID[c.ID] = c
}
