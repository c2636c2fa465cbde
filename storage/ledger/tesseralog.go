package ledger

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/klog/v2"
)

// quietTessera sends what Tessera logs to slog's default logger, warnings and worse:
// once, for the process.
var quietTessera = sync.OnceFunc(func() {
	klog.SetSlogLogger(slog.New(loud{slog.Default().Handler()}))
})

// loud lets warnings and worse through.
type loud struct{ slog.Handler }

func (h loud) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h loud) WithAttrs(attrs []slog.Attr) slog.Handler { return loud{h.Handler.WithAttrs(attrs)} }
func (h loud) WithGroup(name string) slog.Handler       { return loud{h.Handler.WithGroup(name)} }
