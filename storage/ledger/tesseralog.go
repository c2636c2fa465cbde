package ledger

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/klog/v2"
)

// logTessera sends what Tessera logs to slog's default logger, warnings and worse:
// once, for the process.
var logTessera = sync.OnceFunc(func() {
	klog.SetSlogLogger(slog.New(warnings{slog.Default().Handler()}))
})

// warnings drops everything below a warning.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}
func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }
