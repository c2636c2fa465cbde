package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// EventAside is the type of the events, of tenant system, that name the records of which something
// could not be projected.
const EventAside = "record.set_aside"

// SetAside are the positions of the records of which something could not be projected, in order.
// Those of earlier processes are among them once Run has begun.
func (r *Recorder) SetAside() []int64 {
	var all []int64
	r.unprojected.Range(func(position, _ any) bool {
		at, is := position.(int64)
		all = append(all, at)
		return is
	})
	slices.Sort(all)
	return all
}

// setAside remembers a record of which something could not be projected, in an event that later
// processes read. The reason is only logged: it may contain what the record contains.
//
// Crash before the event is written: the record is projected again, and set aside again.
func (r *Recorder) setAside(ctx context.Context, position int64, why error) error {
	if _, known := r.unprojected.LoadOrStore(position, true); !known {
		r.log.ErrorContext(ctx, "a record cannot be projected: it is set aside, and documents lack what follows from it",
			slog.Int64("position", position), slog.String("error", why.Error()))
	}
	rec, err := r.records.Get(ctx, position)
	if err != nil {
		return &unreadError{err}
	}
	body, err := json.Marshal(eventDoc{
		EventID: asideID(position), TenantID: storage.SystemTenant, EventType: EventAside, Payload: map[string]any{},
		TS: rec.At.UTC().Format(time.RFC3339Nano), Position: position,
	})
	if err != nil {
		return err
	}
	return r.patiently(ctx, storage.IndexEvents, func() error {
		_, err := r.documents.Create(ctx, storage.SystemTenant, storage.IndexEvents, storage.Document{ID: asideID(position), Position: position, Body: body})
		return err
	})
}

// takeBack removes the mark of a record that was set aside: all of it is projected now.
func (r *Recorder) takeBack(ctx context.Context, position int64) error {
	if _, aside := r.unprojected.LoadAndDelete(position); !aside {
		return nil
	}
	return r.remove(ctx, storage.SystemTenant, storage.IndexEvents, asideID(position))
}

// readAside reads what earlier processes have set aside. The only error is that ctx has ended.
func (r *Recorder) readAside(ctx context.Context) error {
	q := storage.Query{Terms: map[string][]string{"event_type": {EventAside}}, Limit: 1000}
	for {
		err := r.patiently(ctx, storage.IndexEvents, func() error {
			page, err := r.documents.Search(ctx, storage.SystemTenant, storage.IndexEvents, q)
			for _, doc := range page.Documents {
				r.unprojected.Store(doc.Position, true)
			}
			q.After = page.Cursor
			return err
		})
		if err != nil || q.After == "" {
			return err
		}
	}
}

// IsAside reports whether an event of tenant system names a record that was set aside.
func IsAside(event storage.Document) bool { return event.ID == asideID(event.Position) }

func asideID(position int64) string { return fmt.Sprintf("%012d-aside", position) }

// each writes one by one the documents of a projection that its index does not accept as a whole.
// Records whose documents it does not accept are set aside.
func (r *Recorder) each(ctx context.Context, tenant, index string, all storage.Projection) error {
	var single []storage.Projection
	for _, doc := range all.Put {
		single = append(single, storage.Projection{Put: []storage.Document{doc}})
	}
	for _, doc := range all.Created {
		single = append(single, storage.Projection{Created: []storage.Document{doc}})
	}
	for _, one := range single {
		err := r.patiently(ctx, index, func() error { return r.documents.Project(ctx, tenant, index, one) })
		if errors.As(err, new(*storage.SchemaError)) {
			err = r.setAside(ctx, slices.Concat(one.Put, one.Created)[0].Position, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
