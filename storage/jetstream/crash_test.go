package jetstream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

// routerVariable makes a process one that writes until it is killed: its URLs, account and
// instance.
const routerVariable = "WRIT_TEST_ROUTER"

func TestMain(m *testing.M) {
	natstest.Main()
	if of := os.Getenv(eraserVariable); of != "" {
		fmt.Fprintln(os.Stderr, eraseAndDie(strings.Fields(of)))
		os.Exit(1)
	}
	if of := os.Getenv(routerVariable); of != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(strings.Fields(of)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// succeeded is the exit status of a router that another one has succeeded.
const succeeded = 7

func writeUntilKilled(of []string) error {
	ctx := context.Background()
	js, err := natstest.Dial(of[0], of[1])
	if err != nil {
		return err
	}
	j, err := jetstream.Open(ctx, js, jetstream.Options{Instance: of[2], OnFatal: func(err error) {
		if errors.Is(err, jetstream.ErrSucceeded) {
			os.Exit(succeeded)
		}
		panic(err)
	}})
	if err != nil {
		return err
	}
	if err := j.Lead(ctx, func() error { return nil }); err != nil {
		return err
	}
	return storagetest.Write(ctx, j, of[2], os.Stdout)
}

// cell is a cluster with routers that write one after the other, and their output.
type cell struct {
	*natstest.Cluster
	t            *testing.T
	account      string
	random       *rand.Rand
	all          *storagetest.Promises
	acknowledged chan struct{} // something was acknowledged
	serial       atomic.Int64
}

func newCell(t *testing.T) *cell {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &cell{
		Cluster: natstest.Start(t, 3), t: t, random: rand.New(rand.NewPCG(seed, 0)), all: storagetest.NewPromises(), acknowledged: make(chan struct{}, 1),
	}
	c.account = c.Account()
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	js, began := c.Connect(t, c.account), time.Now()
	if err := jetstream.Create(ctx, js, 3); err != nil {
		t.Fatalf("make the stream, in %s: %v", time.Since(began), err)
	}
	t.Logf("the stream was made in %s", time.Since(began))
	return c
}

// router is a process that writes until another one succeeds it.
type router struct {
	*exec.Cmd
	killed, replaced atomic.Bool
	ended            chan struct{}
}

func (c *cell) start() *router {
	c.t.Helper()
	r := &router{Cmd: exec.CommandContext(c.t.Context(), os.Args[0]), ended: make(chan struct{})}
	r.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s r%d", routerVariable, strings.Join(c.URLs(), ","), c.account, c.serial.Add(1)))
	r.Stderr = os.Stderr
	out, err := r.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			c.all.Note(scan.Text())
			select {
			case c.acknowledged <- struct{}{}:
			default:
			}
		}
		err := r.Wait()
		if r.replaced.Load() && r.ProcessState.ExitCode() == succeeded {
			return
		}
		if !r.killed.Load() && c.t.Context().Err() == nil {
			c.t.Errorf("a router ended by itself: %v", err)
		}
	}()
	return r
}

func (r *router) kill() {
	r.killed.Store(true)
	_ = r.Process.Kill()
	<-r.ended
}

// more waits until so many more answers were given.
func (c *cell) more(n int) {
	c.t.Helper()
	if !c.within(natstest.Patience, n) {
		c.t.Fatalf("the routers have no %d more answers in %s", n, natstest.Patience)
	}
}

// within reports whether so many more answers are given in a time.
func (c *cell) within(d time.Duration, n int) bool {
	late := time.After(d)
	for want := c.all.Len() + n; c.all.Len() < want; {
		select {
		case <-c.acknowledged:
		case <-late:
			return false
		}
	}
	return true
}

func (c *cell) check() {
	c.t.Helper()
	c.all.Check(c.t, c.random, func(o storage.Observer) storagetest.Opened {
		ctx, cancel := context.WithTimeout(c.t.Context(), natstest.Patience)
		defer cancel()
		j, err := jetstream.Open(ctx, c.Connect(c.t, c.account), jetstream.Options{Instance: "reader", Observer: o, OnFatal: func(err error) { c.t.Error(err) }})
		if err != nil {
			c.t.Fatalf("open the journal to check it: %v", err)
		}
		// An answer of a leader that was just deposed may lack the last messages. What is
		// committed comes after all of them.
		if err := j.Lead(ctx, func() error { return nil }); err != nil {
			c.t.Fatalf("lead: %v", err)
		}
		if _, err := j.Commit(ctx, storagetest.CrashCommit("the end", 1)); err != nil {
			c.t.Fatalf("write behind the end: %v", err)
		}
		return j
	})
	c.t.Logf("%d commits, %d outcomes acknowledged", len(c.all.Commits), len(c.all.Outcomes))
}

// TestKilledRouters kills, and holds, the router that writes, again and again. The next one continues,
// and one that was held writes nothing when it wakes, and ends.
func TestKilledRouters(t *testing.T) {
	c := newCell(t)
	running := c.start()
	for range 4 {
		c.more(c.random.IntN(600))
		before := running
		if c.random.IntN(3) > 0 {
			before.kill()
			running = c.start()
			continue
		}
		before.replaced.Store(true)
		_ = before.Process.Signal(syscall.SIGSTOP)
		running = c.start()
		c.more(1 + c.random.IntN(300))
		_ = before.Process.Signal(syscall.SIGCONT)
		<-before.ended
	}
	c.more(100)
	running.kill()
	c.check()
}
