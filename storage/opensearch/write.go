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
	"strconv"
	"time"

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

func (d *Documents) get(ctx context.Context, tenant, index, id string) (*stored, error) {
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
	body, err := json.Marshal(object{"docs": docs})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Docs []*stored `json:"docs"`
	}
	if err := d.call(ctx, request{method: http.MethodPost, path: "/_mget", body: body, repeat: true}, &answer); err != nil {
		return nil, err
	}
	for _, s := range answer.Docs {
		if len(s.Failure) > 0 {
			return nil, fmt.Errorf("%w: get: %w", storage.ErrUnavailable, failed(http.StatusOK, []byte(`{"error":`+string(s.Failure)+`}`)))
		}
		if s.Found {
			return s, nil
		}
	}
	return nil, storage.ErrNotFound
}

// Put writes a document fenced by its position; see storage.Documents.
func (d *Documents) Put(ctx context.Context, tenant, index string, doc storage.Document) error {
	return d.fenced(ctx, tenant, index, storage.PutFence, doc)
}

// Swap writes a document over an expected version; see storage.Documents.
func (d *Documents) Swap(ctx context.Context, tenant, index string, expected int64, doc storage.Document) error {
	return d.fenced(ctx, tenant, index, storage.SwapFence(expected), doc)
}

// fenced writes what a fence lets pass. The first round goes by what this process
// saw last, or by nothing being there: most writes are of new documents, or follow
// one's own, and the server checks. The others read first, and go on until the
// fence refuses or ctx ends: each round that is lost is one that somebody else won.
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
		old, guessed := d.seen.take(home, id), round == 0
		if !guessed {
			if old, err = d.version(ctx, tenant, index, doc.ID); err != nil {
				return err
			}
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
			d.seen.put(home, id, &now)
		}
		if statusOf(err) != http.StatusConflict {
			return refused(index, err)
		}
		if guessed {
			continue
		}
		select {
		case <-time.After(rand.N(time.Duration(min(round, 20)) * time.Millisecond)): //nolint:gosec // G404: it only spreads
		case <-ctx.Done():
			return ctx.Err()
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

// refused makes of a mapping that does not take a document what it is: the schema
// let pass what the index does not allow.
func refused(index string, err error) error {
	if statusOf(err) != http.StatusBadRequest {
		return err
	}
	return errors.Join(&storage.SchemaError{Index: index, Reason: "the mapping of the index does not take it"}, err)
}

// Create writes documents that do not exist; see storage.Documents.
func (d *Documents) Create(ctx context.Context, tenant, index string, docs ...storage.Document) (int, error) {
	admitted := make([]storage.Admitted, len(docs))
	for i, doc := range docs {
		var err error
		if admitted[i], err = storage.Admit(d.cfg.Check, tenant, index, doc); err != nil {
			return 0, err
		}
	}
	created := 0
	for b := (bulk{}); len(admitted) > 0; b = (bulk{}) {
		for len(admitted) > 0 && !b.full() {
			if err := d.addCreate(ctx, &b, tenant, index, admitted[0]); err != nil {
				return created, err
			}
			admitted = admitted[1:]
		}
		n, err := d.bulk(ctx, index, &b)
		if created += n; err != nil {
			return created, err
		}
	}
	return created, nil
}

func (d *Documents) addCreate(ctx context.Context, b *bulk, tenant, index string, doc storage.Admitted) error {
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
	homes, err := d.homes(ctx, index)
	if err != nil {
		return err
	}
	for _, home := range homes {
		err := d.call(ctx, request{method: http.MethodDelete, path: "/" + home + "/_doc/" + url.PathEscape(key(tenant, id)), repeat: true}, nil)
		if err != nil && statusOf(err) != http.StatusNotFound {
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

// bulk sends the actions and returns how many did something. A conflict is a way to
// do nothing.
func (d *Documents) bulk(ctx context.Context, index string, b *bulk) (int, error) {
	done, _, err := d.sendBulk(ctx, index, b)
	return done, err
}

// sendBulk looks at each action: one that met a conflict is among the lost, a document
// that is gone is neither done nor lost; anything else that failed is the error.
func (d *Documents) sendBulk(ctx context.Context, index string, b *bulk) (done int, lost []int, err error) {
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
		for _, result := range item {
			switch {
			case result.Status < http.StatusMultipleChoices:
				done++
			case result.Status == http.StatusConflict:
				lost = append(lost, i)
			case result.Status == http.StatusNotFound && len(result.Error) == 0:
			case err == nil:
				err = refused(index, failed(result.Status, []byte(`{"error":`+string(result.Error)+`}`)))
			}
		}
	}
	return done, lost, err
}
