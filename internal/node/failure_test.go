package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/mcptest"
)

// ended waits for the end of Run.
func ended(t *testing.T, ch <-chan error) error {
	t.Helper()
	select {
	case err := <-ch:
		return err
	case <-time.After(patience):
		t.Fatal("the node goes on")
		return nil
	}
}

// TestJournalFatal: after a failed sync nothing is certain any more, so the node
// ends.
func TestJournalFatal(t *testing.T) {
	n := open(t, config(t.TempDir()))
	ready, ch := make(chan struct{}), make(chan error, 1)
	go func() { ch <- n.Run(t.Context(), ready) }()
	select {
	case <-ready:
	case err := <-ch:
		t.Fatal(err)
	}
	broken := errors.New("disk is gone")
	n.journalFailed(broken)
	n.journalFailed(errors.New("and again")) // nobody waits for a second one
	if err := ended(t, ch); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "journal: ") {
		t.Errorf("error = %v", err)
	}
}

// TestServiceFails: without its HTTP listener the node serves nobody and ends.
func TestServiceFails(t *testing.T) {
	n := open(t, config(t.TempDir()))
	ready, ch := make(chan struct{}), make(chan error, 1)
	go func() { ch <- n.Run(t.Context(), ready) }()
	select {
	case <-ready:
	case err := <-ch:
		t.Fatal(err)
	}
	if err := n.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, ch); err == nil || !strings.HasPrefix(err.Error(), "http: ") || strings.Count(err.Error(), "http: ") != 1 {
		t.Errorf("error = %v", err)
	}
}

// TestStopWhileStarting: whoever is told to end before it was up has not failed.
func TestStopWhileStarting(t *testing.T) {
	n := open(t, config(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Run(ctx, nil); err != nil {
		t.Errorf("error = %v", err)
	}
}

// TestNoGoroutines: a node that was closed leaves none of ours behind.
func TestNoGoroutines(t *testing.T) {
	cfg := config(t.TempDir())
	server := mcptest.New(t, mcptest.Tool{Name: "feed", ReadOnly: true})
	cfg.Skills = []string{server.URL()}
	before := ownStacks()
	once(t, cfg)
	deadline := time.Now().Add(patience)
	for {
		after := ownStacks()
		if len(after) <= len(before) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after:\n%s", len(before), len(after), strings.Join(after, "\n\n"))
		}
		runtime.Gosched()
	}
}

// ownStacks are the stacks of goroutines that run code of this module, but for the
// ones that test.
func ownStacks() []string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 2); err != nil {
		return []string{fmt.Sprint(err)}
	}
	var out []string
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(stack, "aob.dev/writ/") && !strings.Contains(stack, "testing.tRunner(") && !strings.Contains(stack, "testing.(*M).Run") {
			out = append(out, stack)
		}
	}
	return out
}
