package judge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// Committed is the place of a commit's records.
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
	return storage.Result{Verdict: storage.Won, Positions: positions, Winner: storage.NoPosition}
}

// recent remembers the last commits by ID.
type recent struct {
	byID map[string]Committed
	ring []string // the IDs in order of arrival, from at on
	at   int
}

func newRecent() *recent { return &recent{byID: make(map[string]Committed)} }

func (r *recent) add(c Committed) {
	if len(r.ring) < storage.RememberCommits {
		r.ring = append(r.ring, c.ID)
	} else {
		delete(r.byID, r.ring[r.at])
		r.ring[r.at] = c.ID
		r.at = (r.at + 1) % storage.RememberCommits
	}
	r.byID[c.ID] = c
}

// RecentCommits are the commits that Remember was given last, oldest first.
func (s *State) RecentCommits() []Committed {
	var out []Committed
	for _, id := range slices.Concat(s.recent.ring[s.recent.at:], s.recent.ring[:s.recent.at]) {
		out = append(out, s.recent.byID[id])
	}
	return out
}

// EntriesLimit bounds the records of one commit; a batch of intents has up to 200.
const EntriesLimit = 1 << 16

// validateEntries checks that entries make sense on their own, gives them positions from
// first on and clears what their kind does not use, so that an entry looks the
// same to the observer now and after every opening.
func validateEntries(entries []storage.Entry, first int64) ([]storage.Entry, error) {
	if len(entries) == 0 || len(entries) > EntriesLimit {
		return nil, fmt.Errorf("commit: %d entries, must be 1 to %d", len(entries), EntriesLimit)
	}
	out := slices.Clone(entries)
	for i := range out {
		e := &out[i]
		e.Record.Position = first + int64(i)
		e.Record.At = e.Record.At.UTC().Truncate(time.Millisecond)
		if err := validateEntry(e, i); err != nil {
			return nil, fmt.Errorf("commit: entry %d: %w", i, err)
		}
		takesSame := func(o storage.Entry) bool { return o.Take && o.Key == e.Key }
		if e.Take && slices.ContainsFunc(out[:i], takesSame) {
			return nil, fmt.Errorf("commit: entry %d takes the key of an earlier one", i)
		}
	}
	return out, nil
}

// saltSize is that of a salt, in bytes.
const saltSize = 32

func validateEntry(e *storage.Entry, i int) error {
	kind := e.Record.Kind
	switch kind {
	case storage.KindIntent, storage.KindOutcome, storage.KindRelease, storage.KindTakeover, storage.KindControl:
	default:
		return fmt.Errorf("unknown kind %q", kind)
	}
	for _, name := range append(storage.ErasableParts[kind], storage.PartTransient) {
		if _, there := e.Record.Parts[name]; there && len(e.Record.Salts[name]) != saltSize { // its digest would tell what it was
			return fmt.Errorf("part %q has no salt", name)
		}
	}
	if e.Refused && (e.Open || !e.Take) {
		return errors.New("a refusal takes a key, and is not open")
	}
	if (e.Take || e.Open) && kind != storage.KindIntent {
		return fmt.Errorf("only an intent takes a key or is open, not %s", kind)
	}
	if !e.Take {
		e.Key, e.Holder = storage.Key{}, storage.NoPosition
	}
	if kind == storage.KindIntent || kind == storage.KindControl {
		e.Target, e.TargetPrevious = storage.NoPosition, false
		return nil
	}
	if e.TargetPrevious {
		if i == 0 {
			return errors.New("no previous entry")
		}
		e.Target, e.TargetPrevious = e.Record.Position-1, false
	}
	if e.Target < 0 || e.Target >= e.Record.Position {
		return fmt.Errorf("%s is about no earlier position", kind)
	}
	return nil
}
