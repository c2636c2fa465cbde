package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// Get reads one document, as it was last written; see storage.Documents.
func (d *Documents) Get(ctx context.Context, tenant, index, id string) (storage.Document, error) {
	s, err := d.get(ctx, tenant, index, id)
	if err != nil {
		return storage.Document{}, err
	}
	return s.document()
}

// get looks into every index that may hold the document. A month that was removed
// meanwhile holds none.
func (d *Documents) get(ctx context.Context, tenant, index, id string) (*storedDocument, error) {
	homes, err := d.homes(ctx, index)
	if err != nil {
		return nil, err
	}
	if len(homes) == 0 {
		return nil, storage.ErrNotFound
	}
	docs := make([]object, len(homes))
	for i, home := range homes {
		docs[i] = object{"_index": home, "_id": key(tenant, id)}
	}
	_, months := storage.Appended[index]
	answers, err := d.mget(ctx, docs, months)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(answers, func(s *storedDocument) bool { return s.Found }); i >= 0 {
		return answers[i], nil
	}
	return nil, storage.ErrNotFound
}

// mget looks up documents by their keys, again if the server could not look one up for
// now. mayBeGone says that they are one document in several months, of which some may
// be missing.
func (d *Documents) mget(ctx context.Context, docs []object, mayBeGone bool) ([]*storedDocument, error) {
	for n := 1; ; n++ {
		var answer struct {
			Docs []*storedDocument `json:"docs"`
		}
		err := d.call(ctx, request{method: http.MethodPost, path: "/_mget", body: object{"docs": docs}, repeat: true}, &answer)
		if err != nil {
			return nil, err
		}
		if len(answer.Docs) != len(docs) {
			return nil, fmt.Errorf("opensearch: %d answers for %d documents", len(answer.Docs), len(docs))
		}
		for _, s := range answer.Docs {
			if mayBeGone && s.Found {
				break // the others do not matter
			}
			if failure := s.failed(); failure != nil && !(mayBeGone && isIndexNotFound(failure)) {
				err = failure
				break
			}
		}
		if !errors.Is(err, storage.ErrUnavailable) || n == attempts {
			return answer.Docs, err
		}
		if err := waitBefore(ctx, n); err != nil {
			return nil, err
		}
	}
}

// Put writes a document fenced by its position; see storage.Documents.
func (d *Documents) Put(ctx context.Context, tenant, index string, doc storage.Document) error {
	return d.fenced(ctx, tenant, index, storage.PutFence, doc)
}

// Swap writes a document over an expected version; see storage.Documents.
func (d *Documents) Swap(ctx context.Context, tenant, index string, expected int64, doc storage.Document) error {
	return d.fenced(ctx, tenant, index, storage.SwapFence(expected), doc)
}

// fenced writes what a fence allows. The first round assumes what this process
// last saw, or that nothing is stored: most writes are of new documents, or follow
// one's own, and the server checks. The others read first, and continue until the
// fence refuses or ctx ends: each lost round was won by another writer.
func (d *Documents) fenced(ctx context.Context, tenant, index string, fence storage.Fence, doc storage.Document) error {
	admitted, err := storage.Admit(d.cfg.Check, tenant, index, doc)
	if err != nil {
		return err
	}
	if err := storage.MayChange(index); err != nil {
		return err
	}
	source, err := encode(doc)
	if err != nil {
		return err
	}
	home, err := d.home(ctx, index, admitted)
	if err != nil {
		return err
	}
	id := key(tenant, doc.ID)
	for round := 0; ; round++ {
		old, guessed := d.cache.take(home, id), round == 0
		if !guessed {
			versions, err := d.versions(ctx, tenant, index, doc)
			if err != nil {
				return err
			}
			old = versions[0]
		}
		write, err := fence(old.at(), doc.Position)
		if guessed && (err != nil || !write) {
			continue // what is only guessed refuses nothing
		}
		if err != nil || !write {
			return err
		}
		var now version
		err = d.call(ctx, compareAndSet(home, id, source, old), &now)
		if err == nil {
			now.Position = doc.Position
			d.cache.versions.Add(home+"/"+id, &now)
		}
		if isIndexNotFound(err) {
			d.cache.forget() // the guess was about another index
		}
		if statusOf(err) != http.StatusConflict {
			return refused(index, err)
		}
		if guessed {
			continue
		}
		spread := rand.N(time.Duration(min(round, 20)) * time.Millisecond) //nolint:gosec // G404: no secret
		if err := clock.Sleep(ctx, spread); err != nil {
			return err
		}
	}
}

// compareAndSet writes over exactly what was read.
func compareAndSet(home, id string, source []byte, old *version) request {
	q := url.Values{"require_alias": {"true"}}
	if old == nil {
		q.Set("op_type", "create")
	} else {
		q.Set("if_seq_no", strconv.FormatInt(old.SeqNo, 10))
		q.Set("if_primary_term", strconv.FormatInt(old.Term, 10))
	}
	return request{method: http.MethodPut, path: "/" + home + "/_doc/" + url.PathEscape(id), query: q, body: source}
}

// refused explains the error of a mapping that does not take a document: the
// schema allowed what the index does not.
func refused(index string, err error) error {
	if statusOf(err) != http.StatusBadRequest {
		return err
	}
	return errors.Join(&storage.SchemaError{Index: index, Reason: "the mapping of the index does not take it"}, err)
}

// Create writes documents that do not exist; see storage.Documents.
func (d *Documents) Create(ctx context.Context, tenant, index string, docs ...storage.Document) (int, error) {
	admitted := make([]storage.ValidDocument, len(docs))
	for i, doc := range docs {
		var err error
		if admitted[i], err = storage.Admit(d.cfg.Check, tenant, index, doc); err != nil {
			return 0, err
		}
	}
	created := 0
	for len(admitted) > 0 {
		var b bulk
		for b.n < len(admitted) && !b.full() {
			if err := d.addCreate(ctx, &b, tenant, index, admitted[b.n]); err != nil {
				return created, err
			}
		}
		done, _, err := d.bulk(ctx, index, &b)
		if created += done; err != nil {
			return created, err
		}
		admitted = admitted[b.n:]
	}
	return created, nil
}

func (d *Documents) addCreate(ctx context.Context, b *bulk, tenant, index string, doc storage.ValidDocument) error {
	home, err := d.home(ctx, index, doc)
	if err != nil {
		return err
	}
	source, err := encode(doc.Document)
	if err != nil {
		return err
	}
	action := object{"_index": home, "_id": key(tenant, doc.ID)}
	if _, months := storage.Appended[index]; !months {
		action["require_alias"] = true
	}
	return b.add("create", action, source)
}

// Delete removes a document; see storage.Documents.
func (d *Documents) Delete(ctx context.Context, tenant, index, id string) error {
	_, months := storage.Appended[index]
	homes, err := d.homes(ctx, index)
	if err != nil {
		return err
	}
	for _, home := range homes {
		err := d.call(ctx, request{method: http.MethodDelete, path: "/" + home + "/_doc/" + url.PathEscape(key(tenant, id)), repeat: true}, nil)
		switch {
		case isIndexNotFound(err) && !months:
			return err // the document may be in the index that is put in force
		case err != nil && statusOf(err) != http.StatusNotFound:
			return err
		}
	}
	return nil
}

// bulk is the body of one bulk request.
type bulk struct {
	body bytes.Buffer
	n    int
}

const (
	bulkActions = 1000
	bulkBytes   = 8 << 20
)

func (b *bulk) full() bool { return b.n >= bulkActions || b.body.Len() >= bulkBytes }

func (b *bulk) add(action string, target object, source []byte) error {
	line, err := json.Marshal(object{action: target})
	if err != nil {
		return err
	}
	b.body.Write(line)
	b.body.WriteByte('\n')
	if source != nil {
		b.body.Write(source)
		b.body.WriteByte('\n')
	}
	b.n++
	return nil
}

// bulk sends the actions. lost are the places of those that met a conflict and had no effect, as
// one on a missing document does. The error is that of the first which failed otherwise,
// and that an index is missing only if nothing else failed.
func (d *Documents) bulk(ctx context.Context, index string, b *bulk) (done int, lost []int, err error) {
	if b.n == 0 {
		return 0, nil, nil
	}
	var answer struct {
		Items []map[string]struct {
			Status int             `json:"status"`
			Error  json.RawMessage `json:"error"`
		} `json:"items"`
	}
	if err := d.call(ctx, request{method: http.MethodPost, path: "/_bulk", body: b.body.Bytes()}, &answer); err != nil {
		return 0, nil, err
	}
	if len(answer.Items) != b.n {
		return 0, nil, fmt.Errorf("opensearch: %d answers to %d actions", len(answer.Items), b.n)
	}
	for i, item := range answer.Items {
		for _, r := range item {
			switch {
			case r.Status < http.StatusMultipleChoices:
				done++
			case r.Status == http.StatusConflict:
				lost = append(lost, i)
			case r.Status == http.StatusNotFound && len(r.Error) == 0:
			case err == nil || isIndexNotFound(err):
				err = refused(index, failed(r.Status, []byte(`{"error":`+string(r.Error)+`}`)))
			}
		}
	}
	if isIndexNotFound(err) {
		d.cache.forget()
	}
	return done, lost, err
}
