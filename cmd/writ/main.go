// Writ lets AI agents act without trusting them: they can only seal orders,
// which a router checks, records and has carried out.
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

// How long a command may take to end once it is told to: after a moment it says how to end it
// at once, and in the end it is ended as by kill -9. The next start then finds what that leaves.
const (
	endSaid = time.Second / 2
	endTime = 9 * time.Second
)

// end ends the process when it was told to and does not: at a second signal at once.
func end(ctx context.Context, stop func()) {
	<-ctx.Done()
	stop() // a second signal has its usual effect
	time.Sleep(endSaid)
	fmt.Fprintln(os.Stderr, "writ: ending; what still runs is given a few seconds (Ctrl-C again: end at once)")
	time.Sleep(endTime - endSaid)
	fmt.Fprintf(os.Stderr, "writ: not ended after %s, so stopped: nothing recorded is lost, and the next start ends what was open\n", endTime)
	os.Exit(cli.ExitNo)
}

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go end(ctx, stop)
	slog.SetDefault(logging.New(os.Stderr, slog.LevelInfo, false)) // of libraries that have no logger of ours
	return cli.Main(ctx, os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv})
}
