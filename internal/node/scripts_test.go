package node

import (
	"context"
	"errors"
	"io"
	"testing"

	"aob.dev/writ/executors/sandbox"
)

// begins is an input that says when its box reads it.
type begins chan struct{}

func (b begins) Read([]byte) (int, error) {
	close(b)
	return 0, io.EOF
}

// TestEndOfScripts: a node that is told to end starts no script, and ends those that
// run after a grace, however long they would go on.
func TestEndOfScripts(t *testing.T) {
	n := open(t, config(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, ch := make(chan struct{}), make(chan error, 1)
	go func() { ch <- n.Run(ctx, ready) }()
	select {
	case <-ready:
	case err := <-ch:
		t.Fatal(err)
	}
	begun, end := make(begins), make(chan error, 1)
	go func() {
		_, err := n.box.Run(t.Context(), sandbox.Job{Script: "import time; time.sleep(600)", Limits: sandbox.Limits{Wall: patience * 2}, Input: begun})
		end <- err
	}()
	<-begun
	cancel()
	if err := ended(t, ch); err != nil {
		t.Error(err)
	}
	if _, err := n.box.Run(t.Context(), sandbox.Job{Script: "print(1)"}); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("a script after the end: %v", err)
	}
	if err := ended(t, end); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("the script that ran: %v", err)
	}
}
