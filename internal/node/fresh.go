package node

import (
	"context"
	"maps"

	"aob.dev/writ/executors"
	"aob.dev/writ/storage"
)

// fresh makes orders that search an index find what was written before them, also
// in a store whose searches lag behind: whoever was told that something is there
// finds it.
func (n *Node) fresh(handlers map[string]executors.Handler, searched map[string]string) map[string]executors.Handler {
	store, lags := n.documents.(storage.Refresher)
	if !lags {
		return handlers
	}
	out := maps.Clone(handlers)
	for typ, index := range searched {
		out[typ] = func(ctx context.Context, o *executors.Order) (*executors.Result, error) {
			if err := store.Refresh(ctx, index); err != nil {
				return nil, executors.Store(err)
			}
			return handlers[typ](ctx, o)
		}
	}
	return out
}
