// Writ lets AI agents act without trusting them: they can only sign intents,
// which a router checks, records and has executed.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/logging"
)

// Time for a command to end after a signal: first it prints how to end it at once, and finally it
// is ended as by kill -9, which the next start recovers from.
const (
	endNotice = time.Second / 2
	endTime   = 9 * time.Second
)

// end ends the signalled process if it does not end by itself; at a second signal immediately.
func end(stop func()) {
	stop() // a second signal has its usual effect
	time.Sleep(endNotice)
	fmt.Fprintln(os.Stderr, "writ: ending; what still runs is given a few seconds (Ctrl-C again: end at once)")
	time.Sleep(endTime - endNotice)
	fmt.Fprintf(os.Stderr, "writ: not ended after %s, so stopped: nothing recorded is lost, and the next start ends what was open\n", endTime)
	os.Exit(cli.ExitNo)
}

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { end(stop) })
	slog.SetDefault(logging.New(os.Stderr, slog.LevelInfo, false)) // of libraries that have no logger of ours
	return cli.Main(ctx, os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv})
}
