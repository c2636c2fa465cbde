// Package views reads the documents of a tenant as people and agents see them: plans and their
// events, messages, sessions, agents, knowledge. It writes nothing and decides no rights: callers
// name the user whose documents they may see, or none for those of all users.
//
// A read finds what was written before it, even in a store whose searches lag. Errors are those of
// the store, or a *intents.Refusal if the answer would be too large.
package views

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Bounds of a list.
const (
	DefaultList = 20
	listBytes   = 1 << 20 // a list ends after the page that reaches it
	listPage    = 5
)

// bounds of a walk: at most so many documents, by pages, until they have so many bytes.
type bounds struct{ documents, page, bytes int }

// listed are the bounds of a list.
func listed(limit int) bounds { return bounds{cmp.Or(limit, DefaultList), listPage, listBytes} }

// summed are the bounds of a report.
var summed = bounds{documents: 20_000, page: 200, bytes: math.MaxInt}

// fresh lets searches of indices find everything written before.
func fresh(ctx context.Context, docs storage.Documents, indices ...string) error {
	if store, lags := docs.(storage.Refresher); lags {
		return store.Refresh(ctx, indices...)
	}
	return nil
}

// walk reads documents within bounds; the cursor continues where it ended.
func walk(ctx context.Context, docs storage.Documents, tenant, index string, q storage.Query, b bounds, add func(storage.Document) error) (cursor string, err error) {
	if err := fresh(ctx, docs, index); err != nil {
		return "", err
	}
	for n, size := 0, 0; n < b.documents && size < b.bytes; {
		q.Limit = min(b.page, b.documents-n)
		found, err := docs.Search(ctx, tenant, index, q)
		if err != nil {
			return "", err
		}
		for _, doc := range found.Documents {
			if err := add(doc); err != nil {
				return "", err
			}
			n, size = n+1, size+len(doc.Body)
		}
		if q.After = found.Cursor; q.After == "" {
			break
		}
	}
	return q.After, nil
}

// read decodes a document.
func read(doc storage.Document, into any) error {
	if err := json.Unmarshal(doc.Body, into); err != nil {
		return fmt.Errorf("stored document %s: %w", doc.ID, err)
	}
	return nil
}

// query selects documents created by a user, or by anybody of the tenant, newest first.
func query(user, created string, in catalog.Period) storage.Query {
	q := storage.Query{Terms: map[string][]string{}, Sort: "-" + created}
	if user != "" {
		q.Terms["user_id"] = []string{user}
	}
	if in != (catalog.Period{}) {
		q.Ranges = map[string]storage.Range{created: {GTE: in.Since, LT: in.Until}}
	}
	return q
}

// tooLarge refuses an answer.
func tooLarge(reason string) error { return intents.Refuse(intents.OversizedOutput, "", reason) }
