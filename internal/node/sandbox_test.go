package node

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
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

// TestWeakerSandbox: where the machine has a weaker sandbox than the data directory had, scripts are
// refused with the reason, and the node starts. An operator may accept it.
func TestWeakerSandbox(t *testing.T) {
	cfg := config(t.TempDir())
	if err := os.WriteFile(datadir.SandboxFile(cfg.Dir), []byte("stronger\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	if n.box != nil || !strings.Contains(n.noSandbox, "accept it with --sandbox ") {
		t.Errorf("scripts are not refused: %q", n.noSandbox)
	}
	_, err = n.scriptHandlers()["exec_python"](t.Context(), nil)
	if f := (*executors.Failure)(nil); !errors.As(err, &f) || f.Code != intents.ExecutorFailed || !strings.Contains(f.Reason, "this data directory had stronger") {
		t.Errorf("refused with %v", err)
	}
	if err := errors.Join(stop(), n.Close()); err != nil {
		t.Fatal(err)
	}
	_, cfg.Driver, _ = strings.Cut(n.noSandbox, "--sandbox ")
	if n = open(t, cfg); n.box == nil {
		t.Errorf("not accepted: %s", n.noSandbox)
	}
}
