// Package executorcheck checks an external executor with the ticket vectors.
package executorcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/testing/ticketvectors"
	"aob.dev/writ/schemas"
)

// Check is a test environment for an external executor: a bus with a listener, credentials,
// and router keys that exist for this check only. Its tickets are valid nowhere else.
type Check struct {
	// Result is the schema of the result; nil: any result is valid.
	Result *schemas.Schema

	now    func() time.Time
	dir    string
	keys   ticketvectors.Keys
	target ticketvectors.Target
	server *natsserver.Server
	conn   bus.Conn
	http   *http.Server
	env    []string
}

// Open prepares a check of an executor. types are those that it executes, and args are
// the arguments for the first of them.
func Open(ctx context.Context, name string, types []string, args json.RawMessage, log *slog.Logger) (c *Check, err error) {
	c = &Check{now: time.Now, target: ticketvectors.Target{Executor: name, Types: types, Args: args}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.keys, err = ticketvectors.NewKeys(); err != nil {
		return c, err
	}
	if c.dir, err = os.MkdirTemp("", "writ-check-"); err != nil {
		return c, err
	}
	if c.server, err = natsserver.Start(ctx, natsserver.Options{Dir: filepath.Join(c.dir, "nats"), Listen: "127.0.0.1:0", Log: log}); err != nil {
		return c, err
	}
	seed, public, err := bus.NewNKey()
	if err != nil {
		return c, err
	}
	if err := c.server.SetExternal([]natsserver.External{{Name: name, NKey: public, Types: types}}); err != nil {
		return c, err
	}
	seedFile := filepath.Join(c.dir, "seed")
	if err := os.WriteFile(seedFile, []byte(seed+"\n"), 0o600); err != nil {
		return c, err
	}
	if c.conn, err = c.server.Connect(ctx, natsserver.Router); err != nil {
		return c, err
	}
	base, err := c.serveKeys(ctx)
	if err != nil {
		return c, err
	}
	c.env = []string{"WRIT_EXECUTOR=" + name, "WRIT_NATS_URL=" + c.server.URL(), "WRIT_NATS_SEED_FILE=" + seedFile, "WRIT_URL=" + base}
	return c, nil
}

// serveKeys publishes the keys as a router does.
func (c *Check) serveKeys(ctx context.Context) (url string, err error) {
	doc, err := json.Marshal(c.keys.JWKS())
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc) // fails only with the connection
	})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	c.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.http.Serve(l) }() // until Close
	return "http://" + l.Addr().String(), nil
}

// Env are the environment variables of the service: WRIT_EXECUTOR, WRIT_NATS_URL,
// WRIT_NATS_SEED_FILE and WRIT_URL, whose /.well-known/jwks.json has keys and origin.
func (c *Check) Env() []string { return c.env }

// Result is the answer of a service to one vector.
type Result struct {
	Name   string         `json:"name"`
	Doc    string         `json:"doc"`
	Expect intents.Code   `json:"expect"`
	Status intents.Status `json:"status"`
	Got    intents.Code   `json:"got"`
	OK     bool           `json:"ok"` // executed exactly if it had to be
	Reason string         `json:"reason,omitempty"`
}

// lookPause is the pause between the checks of Wait.
const lookPause = 50 * time.Millisecond

// Wait returns when the service answers. The error is the context's.
func (c *Check) Wait(ctx context.Context) error {
	for {
		_, err := c.conn.Request(ctx, bus.Exec(c.target.Types[0]), nil)
		if !errors.Is(err, bus.ErrNoResponders) {
			return err
		}
		if err := clock.Sleep(ctx, lookPause); err != nil {
			return err
		}
	}
}

// answerWait is how long a service may take over one vector.
const answerWait = 10 * time.Second

// vectors returns all vectors, as of this moment.
func (c *Check) vectors() ([]*ticketvectors.Vector, error) {
	t := c.target
	t.Now = c.now().UTC().Truncate(time.Second)
	list, err := ticketvectors.Make(c.keys, t)
	return slices.DeleteFunc(list, func(v *ticketvectors.Vector) bool {
		return v.Name == "ok-deadline" || v.Name == "ok-begin-leeway" // need a clock that stands still
	}), err
}

// Run sends every vector and judges the answers. Each is made when it is sent: a deadline computed
// at the start would have passed if a service is slow, and with it every forgery's.
func (c *Check) Run(ctx context.Context, each func(Result)) error {
	all, err := c.vectors()
	if err != nil {
		return err
	}
	for i := range all {
		fresh, err := c.vectors()
		if err != nil {
			return err
		}
		v := fresh[i]
		raw, err := v.Bytes()
		if err != nil {
			return err
		}
		one, cancel := context.WithTimeout(ctx, answerWait)
		reply, err := c.conn.Request(one, bus.Exec(c.target.Types[0]), raw)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		each(c.judge(v, reply, err))
	}
	return nil
}

// judge: a valid ticket must be executed, with a result that matches its schema; any other must
// fail, and not by its deadline alone.
func (c *Check) judge(v *ticketvectors.Vector, reply []byte, err error) Result {
	res := Result{Name: v.Name, Doc: v.Doc, Expect: v.Expect}
	if err != nil {
		res.Reason = "no answer: " + err.Error()
		return res
	}
	var r intents.Report
	if err := json.Unmarshal(reply, &r); err != nil || (r.Status != intents.Done && r.Status != intents.Failed && r.Status != intents.Unstarted) {
		res.Reason = "the answer is no report {status: done|failed|unstarted, code, …}"
		return res
	}
	res.Status, res.Got, res.Reason = r.Status, r.Code, r.Reason
	res.OK = (r.Status == intents.Done) == (v.Expect == intents.OK)
	if r.Code == intents.ExecutorTimeout && v.Expect != intents.ExecutorTimeout {
		res.OK, res.Reason = false, "its deadline passed before it was judged, which shows nothing: answer sooner"
	}
	if res.OK && c.Result != nil && r.Status == intents.Done {
		if bad := c.Result.ValidateBytes(r.Result); len(bad) > 0 {
			res.OK, res.Reason = false, fmt.Sprintf("the result does not match its schema at %q: %s", bad[0].Pointer, bad[0].Reason)
		}
	}
	return res
}

// Close stops everything and removes its files.
func (c *Check) Close() error {
	var errs []error
	if c.http != nil {
		errs = append(errs, c.http.Close())
	}
	if c.conn != nil {
		c.conn.Close()
	}
	if c.server != nil {
		c.server.Close()
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}
