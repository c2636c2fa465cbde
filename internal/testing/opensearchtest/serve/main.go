//go:build linux

// Command serve runs an OpenSearch on a port of loopback until it is interrupted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"aob.dev/writ/internal/testing/opensearchtest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "opensearch:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	port := 0
	if len(args) > 0 {
		var err error
		if port, err = strconv.Atoi(args[0]); err != nil {
			return fmt.Errorf("port: %w", err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := opensearchtest.Start(ctx, opensearchtest.Options{Port: port})
	if err != nil {
		return err
	}
	fmt.Println(s.URL)
	<-ctx.Done()
	return s.Close()
}
