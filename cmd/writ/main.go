// Writ lets AI agents act without trusting them: they can only seal orders,
// which a router checks, records and has carried out.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/logging"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetDefault(logging.New(os.Stderr, slog.LevelInfo, false)) // of libraries that have no logger of ours
	return cli.Main(ctx, os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv})
}
