package ratelimit

import (
	"sync"
	"time"
)

// Recent is a Table for concurrent use, whose values are forgotten some time after they were put.
type Recent[V any] struct {
	life time.Duration
	now  func() time.Time

	mu    sync.Mutex // guards table
	table *Table[dated[V]]
}

type dated[V any] struct {
	value V
	at    time.Time
}

// NewRecent makes an empty table whose values last for life; 0: for good.
func NewRecent[V any](shares Shares, life time.Duration, now func() time.Time) *Recent[V] {
	return &Recent[V]{life: life, now: now, table: NewTable[dated[V]](shares, nil)}
}

// Get gives a value, which is now the one used last.
func (r *Recent[V]) Get(id string) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.table.Get(id)
	if !ok || r.life > 0 && r.now().Sub(d.at) >= r.life {
		return v, false
	}
	return d.value, true
}

// Put stores a value as [Table.Put] does.
func (r *Recent[V]) Put(id, tenant, key string, size int, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.Put(id, tenant, key, size, dated[V]{v, r.now()})
}

// Remove a value.
func (r *Recent[V]) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.Remove(id)
}

// Len is the number of values in the table.
func (r *Recent[V]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.table.Len()
}
