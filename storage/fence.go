package storage

import "fmt"

// Fence decides whether a document may be written over what is stored (nil:
// nothing is). write false without an error means that it needs not be.
type Fence func(stored *int64, position int64) (write bool, err error)

// PutFence lets pass what is newer: a higher position replaces, an equal one was applied, a lower one is late.
func PutFence(stored *int64, position int64) (bool, error) {
	if stored != nil && position < *stored {
		return false, ErrStale
	}
	return stored == nil || position > *stored, nil
}

// NewerFence is PutFence for writers that may go over the same documents again: what is late is left out.
func NewerFence(stored *int64, position int64) (bool, error) {
	return stored == nil || position > *stored, nil
}

// SwapFence replaces exactly the expected version, and never by an older one:
// later writers are fenced by the position that it leaves.
func SwapFence(expected int64) Fence {
	return func(stored *int64, position int64) (bool, error) {
		at := Nobody
		if stored != nil {
			at = *stored
		}
		if at != expected || position < at {
			return false, ErrStale
		}
		return true, nil
	}
}

// CreateFence leaves what is there.
func CreateFence(stored *int64, _ int64) (bool, error) { return stored == nil, nil }

// Appended are the indices that only grow, with the member that says when. They
// take Create alone: a store may cut them by that time.
var Appended = map[string]string{IndexEvents: "ts", IndexSkillCalls: "ts"}

// MayChange refuses Put and Swap where documents never change.
func MayChange(index string) error {
	if _, ok := Appended[index]; ok {
		return fmt.Errorf("storage: %s only grows: its documents are created and never changed", index)
	}
	return nil
}
