package opensearch

import (
	"context"
	"errors"
	"sync"

	"aob.dev/writ/storage"
)

// version of a stored document: our position, and what the server compares with.
type version struct {
	Position int64 `json:"-"`
	SeqNo    int64 `json:"_seq_no"`
	Term     int64 `json:"_primary_term"`
}

// at is nil where nothing is stored.
func (v *version) at() *int64 {
	if v == nil {
		return nil
	}
	return &v.Position
}

// version reads what is stored; nil: nothing is.
func (d *Documents) version(ctx context.Context, tenant, index, id string) (*version, error) {
	s, err := d.get(ctx, tenant, index, id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil //nolint:nilnil // nothing is an answer
	}
	if err != nil {
		return nil, err
	}
	position, err := s.position()
	return &version{Position: position, SeqNo: s.SeqNo, Term: s.Term}, err
}

// seenLimit bounds the versions that are remembered; what falls out is read again.
const seenLimit = 4096

// seen remembers the versions that this process has written. They are guesses:
// another process may have written since, or removed the document.
type seen struct {
	mu       sync.Mutex
	versions map[string]*version
}

// take returns a version and forgets it, so that only one writer goes by it.
func (s *seen) take(home, id string) *version {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.versions[home+"/"+id]
	delete(s.versions, home+"/"+id)
	return v
}

// clear forgets all, as the indices are others.
func (s *seen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions = nil
}

// forget all that this process remembers of indices, as one of them is gone.
func (d *Documents) forget() {
	d.seen.clear()
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.months)
}

func (s *seen) put(home, id string, v *version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.versions == nil || len(s.versions) >= seenLimit {
		s.versions = make(map[string]*version)
	}
	s.versions[home+"/"+id] = v
}
