package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// storeLag is the least age of events that are counted, because the stores may lag.
const storeLag = 5 * time.Second

// Recent has the figures of the last hour in memory, of each tenant. Who looks at them reads no
// store: they are counted minute by minute, beside. It is safe for concurrent use.
type Recent struct {
	Documents Documents
	Tenants   func() []string
	Now       func() time.Time
	Log       *slog.Logger

	counting sync.Mutex // guards minutes
	minutes  []minute

	mu    sync.Mutex // guards the rest; held for no read of a store
	until time.Time  // zero: nothing is counted yet
	of    map[string]Figures

	looked chan struct{} // somebody has seen old figures
}

// minute is what ended in a minute, of each tenant that has events in it.
type minute struct {
	since, until time.Time
	of           map[string]slice
}

// NewRecent makes a Recent, which Run or Count fills.
func NewRecent(docs Documents, tenants func() []string, now func() time.Time, log *slog.Logger) *Recent {
	return &Recent{Documents: docs, Tenants: tenants, Now: now, Log: log, looked: make(chan struct{}, 1)}
}

// Figures of a tenant's last hour, at most a minute old; false: none are counted yet. If they are older
// than seconds, they are counted anew for the next look.
func (r *Recent) Figures(tenant string) (Figures, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Now().Sub(r.until) > 2*storeLag {
		select {
		case r.looked <- struct{}{}:
		default:
		}
	}
	f, ok := r.of[tenant]
	if !ok {
		f = Figures{Since: r.until.Add(-hour), Until: r.until}
	}
	return f, !r.until.IsZero()
}

// Run counts every minute, and when somebody has looked, until ctx ends.
func (r *Recent) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for looked := true; ; {
		if looked || r.age() >= every { // else a watch has counted
			if err := r.Count(ctx); err != nil && ctx.Err() == nil {
				r.Log.WarnContext(ctx, "the figures of the last hour could not be counted; they are again in a minute", slog.String("error", err.Error()))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			looked = false
		case <-r.looked:
			looked = true
		}
	}
}

func (r *Recent) age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Now().Sub(r.until)
}

// Count brings the figures up to now.
func (r *Recent) Count(ctx context.Context) error {
	r.counting.Lock()
	defer r.counting.Unlock()
	until := r.Now().UTC().Add(-storeLag)
	if err := r.read(ctx, until); err != nil {
		return err
	}
	slicesOf := map[string][]slice{}
	for _, m := range r.minutes {
		for tenant, s := range m.of {
			slicesOf[tenant] = append(slicesOf[tenant], s)
		}
	}
	of := make(map[string]Figures, len(slicesOf))
	for tenant, list := range slicesOf {
		of[tenant] = figuresOf(r.minutes[0].since, until, list)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until, r.of = until, of
	return nil
}

// within returns the figures of all tenants together in a window, in whole minutes.
func (r *Recent) within(until time.Time, window time.Duration) Figures {
	r.counting.Lock()
	defer r.counting.Unlock()
	from := until.Add(-window).Truncate(every)
	list := r.minutes[max(slices.IndexFunc(r.minutes, func(m minute) bool { return !m.since.Before(from) }), 0):]
	var all []slice
	for _, m := range list {
		for _, s := range m.of {
			all = append(all, s)
		}
	}
	return figuresOf(list[0].since, list[len(list)-1].until, all)
}

// read brings the minutes up to a time. It reads the newest two again: the last minute was
// incomplete, and documents may have come late.
func (r *Recent) read(ctx context.Context, until time.Time) error {
	from := until.Add(-hour).Truncate(every)
	if len(r.minutes) > 0 && r.minutes[len(r.minutes)-1].until.After(until) {
		r.minutes = nil // the clock was set back
	}
	r.minutes = slices.DeleteFunc(r.minutes, func(m minute) bool { return m.since.Before(from) })
	r.minutes = r.minutes[:max(len(r.minutes)-2, 0)]
	if len(r.minutes) > 0 {
		from = r.minutes[len(r.minutes)-1].until
	}
	tenants, first, err := r.active(ctx, r.Tenants(), from, until)
	if err != nil {
		return err
	}
	for ; from.Before(until); from = from.Add(every) {
		to := from.Add(every)
		if to.After(until) {
			to = until
		}
		var counted []string                  // nobody, in a minute without events: a start reads few of the hour
		if to.Add(time.Second).After(first) { // the records of a commit may be on both sides of a minute
			counted = tenants
			if tenants, first, err = r.active(ctx, tenants, to, until); err != nil {
				return err
			}
		}
		m := minute{from, to, map[string]slice{}}
		for _, tenant := range counted {
			if m.of[tenant], err = readSlice(ctx, r.Documents, tenant, from, to); err != nil {
				return err
			}
		}
		r.minutes = append(r.minutes, m)
	}
	return nil
}

// active returns those tenants that have events in a period, and when the first of these events was.
func (r *Recent) active(ctx context.Context, of []string, since, until time.Time) (tenants []string, first time.Time, err error) {
	q := storage.Query{Ranges: map[string]storage.Range{"ts": {GTE: intents.FormatTime(since), LT: intents.FormatTime(until)}}, Sort: "ts", Limit: 1}
	first = until
	for _, tenant := range of {
		page, err := r.Documents.Search(ctx, tenant, storage.IndexEvents, q)
		if err != nil {
			return nil, first, fmt.Errorf("monitor: tenant %s: %w", tenant, err)
		}
		for _, d := range page.Documents {
			var e struct {
				At time.Time `json:"ts"`
			}
			if err := json.Unmarshal(d.Body, &e); err != nil {
				return nil, first, err
			}
			tenants = append(tenants, tenant)
			if e.At.Before(first) {
				first = e.At
			}
		}
	}
	return tenants, first, nil
}
