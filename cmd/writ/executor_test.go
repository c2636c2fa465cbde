package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executorcheck"
	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/schemas"
)

// acme builds the service of testdata/acme, a module of its own, at $ACME; $CATALOG is the
// directory of its rows.
func acme(ts *testscript.TestScript, w *world, _ []string) {
	here := must[string](ts)(os.Getwd())
	root := must[string](ts)(filepath.Abs(filepath.Join(here, "..", "..")))
	module := filepath.Join(w.dir, "module")
	ts.Check(os.CopyFS(module, os.DirFS(filepath.Join(here, "testdata", "acme"))))
	text := string(must[[]byte](ts)(os.ReadFile(filepath.Join(module, "go.mod"))))
	ts.Check(os.WriteFile(filepath.Join(module, "go.mod"), []byte(strings.Replace(text, "../../../..", root, 1)), 0o600))
	ts.Check(os.WriteFile(filepath.Join(module, "go.sum"), must[[]byte](ts)(os.ReadFile(filepath.Join(root, "go.sum"))), 0o600))
	binary := filepath.Join(w.dir, "acme")
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Dir, cmd.Stdout, cmd.Stderr = module, ts.Stdout(), ts.Stderr()
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOWORK=off")
	ts.Check(cmd.Run())
	ts.Setenv("ACME", binary)
	ts.Setenv("CATALOG", filepath.Join(module, "catalog"))
}

// port finds a free port for a listener, at $PORT as host:port. It is below those that a system
// gives to whoever asks for any.
func port(ts *testscript.TestScript, _ *world, _ []string) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
	ts.Check(err)
	ts.Setenv("PORT", l.Addr().String())
	ts.Check(l.Close())
}

// outside starts a third party's service in the background, with the address of the running writ:
// outside SEEDFILE COMMAND ARGS….
func outside(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "outside SEEDFILE COMMAND ARGS…")
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), ts.Stdout(), ts.Stderr()
	cmd.Env = append(environ(ts, w), "WRIT_NATS_URL=nats://"+ts.Getenv("PORT"), "WRIT_NATS_SEED_FILE="+ts.MkAbs(args[0]), "WRIT_URL="+w.url, "WRIT_EXECUTOR=x-acme")
	ts.Check(cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	end := func() { _ = cmd.Process.Kill(); <-ended }
	w.services = append(w.services, end)
	ts.Defer(end)
}

// judged sends the ticket vectors to a service of executor x-acme, with rows of $CATALOG, and prints
// those that it answers wrongly: judged COMMAND ARGS….
func judged(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 1, "judged COMMAND ARGS…")
	known := must[*catalog.Catalog](ts)(catalog.Open(ts.Getenv("CATALOG")))
	row, ok := known.Lookup("x.acme.echo")
	if !ok {
		ts.Fatalf("no row of x.acme.echo")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	check := must[*executorcheck.Check](ts)(executorcheck.Open(ctx, row.Executor, []string{row.Type}, json.RawMessage(`{"text":"hello"}`), slog.New(slog.DiscardHandler)))
	defer func() { ts.Check(check.Close()) }()
	check.Result = must[*schemas.Schema](ts)(row.ResultSchema())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = ts.MkAbs("."), append(os.Environ(), check.Env()...), ts.Stderr()
	if lax := ts.Getenv("ACME_LAX"); lax != "" {
		cmd.Env = append(cmd.Env, "ACME_LAX="+lax)
	}
	ts.Check(cmd.Start())
	defer func() { cancel(); _ = cmd.Wait() }() // killed
	ts.Check(check.Wait(ctx))
	passed := 0
	ts.Check(check.Run(ctx, func(r executorcheck.Result) {
		if r.OK {
			passed++
			return
		}
		fmt.Fprintf(ts.Stdout(), "%s: expected %s, got %s %s: %s\n", r.Name, r.Expect, r.Status, r.Got, r.Reason)
	}))
	fmt.Fprintf(ts.Stdout(), "%d vectors passed\n", passed)
}

// killServices kills the services of somebody else: they would come back by themselves
// once a writ listens on $PORT again.
func killServices(_ *testscript.TestScript, w *world, _ []string) {
	for _, end := range w.services {
		end()
	}
}

// admitted waits until a seed connects to $PORT, barred until it does not:
// credentials are applied while writ runs.
func admitted(ts *testscript.TestScript, _ *world, args []string) { connecting(ts, args, true) }

func barred(ts *testscript.TestScript, _ *world, args []string) { connecting(ts, args, false) }

func connecting(ts *testscript.TestScript, args []string, in bool) {
	want(ts, args, 1, "admitted|barred SEEDFILE")
	option := must[nats.Option](ts)(nats.NkeyOptionFromSeed(ts.MkAbs(args[0])))
	until(ts, func() (bool, string) {
		err := natstest.Answer(func() error {
			nc, err := nats.Connect("nats://"+ts.Getenv("PORT"), option)
			if err == nil {
				nc.Close()
			}
			return err
		})
		if err != nil && !errors.Is(err, nats.ErrAuthorization) {
			ts.Fatalf("%v", err)
		}
		return (err == nil) == in, "connecting: " + fmt.Sprint(err)
	})
}

// resubmit signs an intent anew and submits it until its executor is there: as
// sign, without a file.
func resubmit(ts *testscript.TestScript, w *world, args []string) {
	until(ts, func() (bool, string) {
		sign(ts, w, append([]string{"resubmitted.json"}, args...))
		status, _, raw := request(ts, w, http.MethodPost, "/v1/intents", nil, []byte(ts.ReadFile("resubmitted.json")))
		if status == http.StatusOK {
			must[int](ts)(ts.Stdout().Write(raw))
		} else if !strings.Contains(string(raw), `"code":"DISPATCH_UNAVAILABLE"`) {
			ts.Fatalf("HTTP %d %s", status, raw)
		}
		return status == http.StatusOK, string(raw)
	})
}

// until asks again and again, for as long as patience lasts.
func until(ts *testscript.TestScript, done func() (bool, string)) {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ok, why := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not within %s: %s", patience, why)
		}
	}
}
