package mcp

import (
	"bufio"
	"context"
	"io"
	"log/slog"
)

// Limits of what is logged of a child's standard error, for one process.
const (
	maxStderrLine  = 2048 // bytes
	maxStderrLines = 500
)

// drain logs a child's standard error until it ends. It always keeps reading,
// since a full pipe would stop the child; control characters are escaped.
func drain(ctx context.Context, in io.ReadCloser, log *slog.Logger) {
	defer in.Close()
	r := bufio.NewReaderSize(in, 2*maxStderrLine)
	for n, rest := 0, false; ; {
		line, more, err := r.ReadLine()
		if err != nil {
			return
		}
		if !rest { // the rest of a long line is dropped
			n++
			switch {
			case n <= maxStderrLines:
				log.InfoContext(ctx, "skill server", slog.String("stderr", printable(string(line), maxStderrLine)))
			case n == maxStderrLines+1:
				log.WarnContext(ctx, "skill server writes too much, the rest is not logged")
			}
		}
		rest = more
	}
}
