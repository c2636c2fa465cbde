package sqlite

import "aob.dev/writ/storage"

// fence decides whether a document may be written over what is stored (nil:
// nothing is). write false without an error means that it needs not be.
type fence func(stored *int64, position int64) (write bool, err error)

// putFence: a higher position replaces, an equal one was applied, a lower one is late.
func putFence(stored *int64, position int64) (bool, error) {
	if stored != nil && position < *stored {
		return false, storage.ErrStale
	}
	return stored == nil || position > *stored, nil
}

// createFence leaves what is there.
func createFence(stored *int64, _ int64) (bool, error) { return stored == nil, nil }

// swapFence replaces exactly the expected version, and never by an older one:
// later writers are fenced by the position that it leaves.
func swapFence(expected int64) fence {
	return func(stored *int64, position int64) (bool, error) {
		at := storage.Nobody
		if stored != nil {
			at = *stored
		}
		if at != expected || position < at {
			return false, storage.ErrStale
		}
		return true, nil
	}
}
