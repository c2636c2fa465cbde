// Writ lets AI agents act without trusting them: they can only seal orders,
// which a router checks, records and has carried out.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"aob.dev/writ/internal/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv})
}
