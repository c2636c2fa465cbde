package executors

import (
	"context"
	"encoding/json"
	"errors"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Document is v as a document of a store, at a position.
func Document(id string, position int64, v any) (storage.Document, error) {
	body, err := json.Marshal(v)
	return storage.Document{ID: id, Position: position, Body: body}, err
}

// Store converts a storage error to the outcome of an intent. If the store does not answer, the
// intent may be retried: writes are fenced, so a second one changes nothing. nil, failures and the
// context's errors stay as they are.
func Store(err error) error {
	var (
		f      *Failure
		schema *storage.SchemaError
	)
	switch {
	case err == nil, errors.As(err, &f), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, storage.ErrNotFound):
		return Fail(intents.NotFound, "not found, or not visible to this caller")
	case errors.Is(err, storage.ErrQuota):
		return Fail(intents.Overloaded, "the disk quota of the tenant is used up: erase something, or raise tenant_disk_mb")
	case errors.Is(err, storage.ErrFull):
		return Fail(intents.Overloaded, "there is not enough free disk to write")
	case errors.Is(err, storage.ErrSlow):
		return Fail(intents.Overloaded, "the query took too long: narrow it, by a shorter time or one more term")
	case errors.Is(err, storage.ErrBusy):
		return Fail(intents.Overloaded, "another statement of the tenant is being carried out: ask again when it has ended")
	case errors.Is(err, storage.ErrStale):
		return Fail(intents.StaleWrite, "a later intent has already written")
	case errors.As(err, &schema):
		return Fail(intents.ExecutorFailed, "StorageSchemaError at "+schema.Index+schema.Pointer+": "+schema.Reason)
	}
	return Unavailable("the store does not answer", err)
}

// Unavailable is a failure before any effect: a service does not answer now and may
// later. The cause goes to the log only.
func Unavailable(reason string, cause error) *Failure {
	return &Failure{Code: intents.ExecutorFailed, Reason: reason, Retryable: true, cause: cause}
}

// Fresh lets intents that search indices find everything written before them, even in a store whose
// searches lag. searched has the indices by type.
func Fresh(docs storage.Documents, handlers map[string]Handler, searched map[string][]string) map[string]Handler {
	store, lags := docs.(storage.Refresher)
	if !lags {
		return handlers
	}
	for typ, indices := range searched {
		handle := handlers[typ]
		handlers[typ] = func(ctx context.Context, o *Intent) (*Result, error) {
			if err := store.Refresh(ctx, indices...); err != nil {
				return nil, Store(err)
			}
			return handle(ctx, o)
		}
	}
	return handlers
}
