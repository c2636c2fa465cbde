package opensearch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"aob.dev/writ/storage"
)

// keyLimit is the server's bound on an _id in bytes.
const keyLimit = 512

// key is the _id of a document. The tenant has no "/" in it, so that no id of one
// tenant is another's. One that is too long is named by its hash; "#" is in front
// of a hash and of nothing else.
func key(tenant, id string) string {
	k := url.PathEscape(tenant) + "/" + id
	if len(k) <= keyLimit && !strings.HasPrefix(id, "#") {
		return k
	}
	sum := sha256.Sum256([]byte(id))
	k = url.PathEscape(tenant)
	if len(k) > keyLimit/2 {
		of := sha256.Sum256([]byte(tenant))
		k = "#" + hex.EncodeToString(of[:])
	}
	return k + "/#" + hex.EncodeToString(sum[:])
}

// stamp is our member of a stored document.
type stamp struct {
	Position int64  `json:"position"`
	ID       string `json:"id"`
}

// encode is the stored form of a document, on one line.
func encode(doc storage.Document) ([]byte, error) {
	s, err := json.Marshal(stamp{doc.Position, doc.ID})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`{"` + own + `":`)
	b.Write(s)
	var body bytes.Buffer
	if err := json.Compact(&body, doc.Body); err != nil {
		return nil, err // it was admitted
	}
	if members := body.Bytes()[1:]; members[0] != '}' {
		b.WriteByte(',')
		b.Write(members)
	} else {
		b.WriteByte('}')
	}
	return b.Bytes(), nil
}

// storedDocument is a document as the server returns it.
type storedDocument struct {
	Index   string          `json:"_index"`
	Key     string          `json:"_id"`
	Found   bool            `json:"found"`
	SeqNo   int64           `json:"_seq_no"`
	Term    int64           `json:"_primary_term"`
	Source  json.RawMessage `json:"_source"`
	Score   *float64        `json:"_score"`
	Sort    json.RawMessage `json:"sort"`
	Failure json.RawMessage `json:"error"`
}

// failed reports that the server could not look the document up.
func (s *storedDocument) failed() error {
	if len(s.Failure) == 0 {
		return nil
	}
	return fmt.Errorf("%w: get: %w", storage.ErrUnavailable, failed(http.StatusOK, []byte(`{"error":`+string(s.Failure)+`}`)))
}

var errForeign = errors.New("opensearch: a document that this program has not written")

func (s *storedDocument) document() (storage.Document, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(s.Source, &members); err != nil {
		return storage.Document{}, fmt.Errorf("opensearch: stored document: %w", err)
	}
	var mine stamp
	if err := json.Unmarshal(members[own], &mine); err != nil || mine.ID == "" {
		return storage.Document{}, errForeign
	}
	delete(members, own)
	body, err := json.Marshal(members)
	return storage.Document{ID: mine.ID, Position: mine.Position, Body: body}, err
}

// position of a stored document.
func (s *storedDocument) position() (int64, error) {
	var source struct {
		Writ *stamp `json:"writ"`
	}
	if err := json.Unmarshal(s.Source, &source); err != nil || source.Writ == nil {
		return 0, errForeign
	}
	return source.Writ.Position, nil
}

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

// cacheLimit bounds the versions that are remembered; what falls out is read again.
const cacheLimit = 4096

// versionCache remembers the versions that this process has written, and the indices of months
// that it has found or made. They are guesses: another process may have written since,
// or removed the document or the index.
type versionCache struct {
	versions *lru.Cache[string, *version] // by index and key
	months   sync.Map                     // names
}

// take returns a version and drops it, so that only one writer uses it.
func (s *versionCache) take(home, id string) *version {
	v, _ := s.versions.Get(home + "/" + id)
	if !s.versions.Remove(home + "/" + id) {
		return nil
	}
	return v
}

// forget drops all entries, as one of the indices is missing.
func (s *versionCache) forget() {
	s.versions.Purge()
	s.months.Clear()
}
