package opensearch

import (
	"context"
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

// versions of documents in an index with an alias, nil for one that is not there.
func (d *Documents) versions(ctx context.Context, tenant, index string, docs ...storage.Document) ([]*version, error) {
	wanted := make([]object, len(docs))
	for i, doc := range docs {
		wanted[i] = object{"_index": d.alias(index), "_id": key(tenant, doc.ID), "_source": []string{own}}
	}
	answers, err := d.mget(ctx, wanted, false)
	if err != nil {
		return nil, err
	}
	versions := make([]*version, len(answers))
	for i, s := range answers {
		if !s.Found {
			continue
		}
		position, err := s.position()
		if err != nil {
			return nil, err
		}
		versions[i] = &version{Position: position, SeqNo: s.SeqNo, Term: s.Term}
	}
	return versions, nil
}

// seenLimit bounds the versions that are remembered; what falls out is read again.
const seenLimit = 4096

// seen remembers the versions that this process has written, and the indices of months
// that it has found or made. They are guesses: another process may have written since,
// or removed the document or the index.
type seen struct {
	mu       sync.Mutex // guards what follows
	versions map[string]*version
	months   map[string]bool
}

// take returns a version and forgets it, so that only one writer goes by it.
func (s *seen) take(home, id string) *version {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.versions[home+"/"+id]
	delete(s.versions, home+"/"+id)
	return v
}

func (s *seen) put(home, id string, v *version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.versions == nil || len(s.versions) >= seenLimit {
		s.versions = make(map[string]*version)
	}
	s.versions[home+"/"+id] = v
}

func (s *seen) month(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.months[name]
}

func (s *seen) putMonth(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.months == nil {
		s.months = make(map[string]bool)
	}
	s.months[name] = true
}

// forget all, as one of the indices is gone.
func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions, s.months = nil, nil
}
