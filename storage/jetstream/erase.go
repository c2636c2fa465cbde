package jetstream

import (
	"context"
	"fmt"

	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/group"
)

// ErrClosed is the error of every call after Close.
var ErrClosed = group.ErrClosed

// Erase destroys the keys of records; see storage.Eraser and the package comment. No message of
// the journal changes.
func (j *Journal) Erase(ctx context.Context, positions ...int64) error {
	return j.erase(ctx, positions, func(s codec.Slots) uint64 { return s.Erasable })
}

// EraseTransient erases the part transient of records; see storage.Eraser.
func (j *Journal) EraseTransient(ctx context.Context, positions ...int64) error {
	return j.erase(ctx, positions, func(s codec.Slots) uint64 { return s.Transient })
}

func (j *Journal) erase(ctx context.Context, positions []int64, which func(codec.Slots) uint64) error {
	if err := j.usable(); err != nil {
		return err
	}
	if err := j.Fresh(ctx); err != nil { // another router may have written the record
		return err
	}
	var slots []uint64
	for _, at := range positions {
		_, g, err := j.group(ctx, at)
		if err != nil {
			return fmt.Errorf("erase record %d: %w", at, err)
		}
		if slot := which(g.slots[at-g.First]); slot != 0 {
			slots = append(slots, slot)
		}
	}
	if err := j.stream.keys.erase(ctx, slots); err != nil {
		return err
	}
	j.dropCache()
	return nil
}

// dropCache has records be read from the stream again, where parts were erased.
func (j *Journal) dropCache() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.cache = cache{}
	j.options.OnErased()
}
