package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"aob.dev/writ/storage"
)

// cacheBytes is about how much of the newest groups stays in memory: followers of the
// journal read them soon.
const cacheBytes = 32 << 20

// cache is the newest groups, without gap. It is emptied when keys are erased.
type cache struct {
	groups []block
	bytes  int
}

func weigh(g block) (n int) {
	for _, e := range g.entries {
		for _, part := range e.Record.Parts {
			n += len(part)
		}
	}
	return n
}

func (c *cache) add(g block) {
	c.groups = append(c.groups, g)
	for c.bytes += weigh(g); c.bytes > cacheBytes && len(c.groups) > 1; c.groups = c.groups[1:] {
		c.bytes -= weigh(c.groups[0])
	}
}

// find the group that has a position; i is where it would be.
func (c *cache) find(position int64) (i int, found bool) {
	i, found = slices.BinarySearchFunc(c.groups, position, func(g block, p int64) int { return cmp.Compare(g.First, p) })
	if !found && i > 0 {
		i--
		found = position < c.groups[i].First+int64(len(c.groups[i].entries))
	}
	return i, found
}

// cached is a group in memory.
func (j *Journal) cached(position int64) (g block, found bool) {
	j.Mu.RLock()
	defer j.Mu.RUnlock()
	i, found := j.cache.find(position)
	if found {
		g = j.cache.groups[i]
	}
	return g, found
}

// group reads the group of a position as it is now.
func (j *Journal) group(ctx context.Context, position int64) (message, block, error) {
	j.Mu.RLock()
	low, high, ok := j.index.around(position)
	j.Mu.RUnlock()
	if !ok {
		return message{}, block{}, storage.ErrNotFound
	}
	return j.stream.group(ctx, position, low, high)
}

// Get reads one record; see storage.Records.
func (j *Journal) Get(ctx context.Context, position int64) (storage.Record, error) {
	if err := errors.Join(ctx.Err(), j.usable()); err != nil {
		return storage.Record{}, err
	}
	g, found := j.cached(position)
	if !found {
		var err error
		if _, g, err = j.group(ctx, position); err != nil {
			return storage.Record{}, fmt.Errorf("read record %d: %w", position, err)
		}
	}
	return g.entries[position-g.First].Record, nil
}

// Scan yields records in order; see storage.Records. After an error it ends.
func (j *Journal) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		from, end := max(from, 0), j.Next()
		show := func(g block) bool {
			for _, e := range g.entries[min(max(from-g.First, 0), int64(len(g.entries))):] {
				if from >= end || !yield(e.Record, nil) {
					return false
				}
				from++
			}
			return from < end
		}
		for from < end {
			if err := errors.Join(ctx.Err(), j.usable()); err != nil {
				yield(storage.Record{}, err)
				return
			}
			g, found := j.cached(from)
			if found && !show(g) {
				return
			}
			if found {
				continue
			}
			if more, err := j.scanOld(ctx, from, show); err != nil {
				yield(storage.Record{}, fmt.Errorf("read records from %d: %w", from, err))
				return
			} else if !more {
				return
			}
		}
	}
}

// scanOld shows groups of the stream from the one on that has a position, until show returns
// false or the next one is in memory.
func (j *Journal) scanOld(ctx context.Context, from int64, show func(block) bool) (more bool, err error) {
	first, _, err := j.group(ctx, from)
	if err != nil {
		return false, err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	j.walk(reading, first.seq, func(m message) bool {
		if m.term {
			return true
		}
		var g block
		if g, _, err = decode(m.data, j.stream.keys.of(ctx)); err != nil {
			return false
		}
		if more = show(g); !more {
			return false
		}
		_, near := j.cached(g.First + int64(len(g.entries)))
		return !near
	})
	return more, errors.Join(err, ctx.Err())
}

// usable is the error of calls that are of no use any more.
func (j *Journal) usable() error {
	select {
	case <-j.Stopping():
		return ErrClosed
	default:
		return j.Failure()
	}
}
