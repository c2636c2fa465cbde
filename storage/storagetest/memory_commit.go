package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// stored is the record as it is read back: at a position, in milliseconds, and
// not sharing the caller's maps.
func stored(r storage.Record, position int64) storage.Record {
	r.Position, r.At = position, r.At.UTC().Truncate(time.Millisecond)
	r.Parts, r.Salts = maps.Clone(r.Parts), maps.Clone(r.Salts)
	return r
}

// positioned checks what can be said about a commit alone.
func (j *Journal) positioned(c storage.Commit) ([]storage.Entry, error) {
	if c.ID == "" || len(c.ID) > 128 || len(c.Entries) == 0 {
		return nil, errors.New("storagetest: a commit needs an ID of 1 to 128 bytes and entries")
	}
	entries := slices.Clone(c.Entries)
	keys := make(map[storage.Key]bool)
	for i := range entries {
		e := &entries[i]
		e.Record = stored(e.Record, j.next()+int64(i))
		if e.OfPrevious && i > 0 {
			e.Of = e.Record.Position - 1
		} else if e.OfPrevious {
			e.Of = storage.Nobody
		}
		e.OfPrevious = false
		switch e.Record.Kind {
		case storage.KindOrder, storage.KindControl:
			e.Of = storage.Nobody
		case storage.KindOutcome, storage.KindRelease, storage.KindTakeover:
			if e.Of < 0 || e.Of >= e.Record.Position {
				return nil, fmt.Errorf("storagetest: entry %d is about no earlier position", i)
			}
		default:
			return nil, fmt.Errorf("storagetest: entry %d has kind %q", i, e.Record.Kind)
		}
		if (e.Take || e.Open) && e.Record.Kind != storage.KindOrder || e.Take && keys[e.Key] {
			return nil, fmt.Errorf("storagetest: entry %d may not take that", i)
		}
		keys[e.Key] = e.Take || keys[e.Key]
		if !e.Take {
			e.Key, e.Holder = storage.Key{}, storage.Nobody
		}
	}
	return entries, nil
}

// moved plays the entries on a copy of the orders that they are about.
func (j *Journal) moved(entries []storage.Entry) (bool, error) {
	states := make(map[int64]storage.State) // orders that this commit has moved
	keyless := make(map[int64]bool)         // orders of this commit that may only end
	for i, e := range entries {
		now, known := states[e.Of]
		if o, ok := j.orders[e.Of]; ok && !known {
			now, known = o.State, true
		}
		ok := true
		switch e.Record.Kind {
		case storage.KindOrder:
			p := e.Record.Position
			switch {
			case e.Open:
				states[p] = storage.StateOpen
			case e.Take:
				states[p] = storage.StateHeld
			default:
				keyless[p] = true
			}
			continue
		case storage.KindControl:
			continue
		case storage.KindOutcome:
			known = known || keyless[e.Of]
			ok = now != storage.StateDone
			states[e.Of] = storage.StateDone
		case storage.KindRelease:
			ok = now == storage.StateHeld
			states[e.Of] = storage.StateOpen
		case storage.KindTakeover:
			ok = now == storage.StateOpen
		}
		if !known {
			return false, fmt.Errorf("storagetest: entry %d is about no order", i)
		}
		if !ok {
			return true, nil
		}
	}
	return false, nil
}
