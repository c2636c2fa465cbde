//go:build integration && linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nkeys"
)

// promises are what was acknowledged on a data directory. What was cut off before
// it was acknowledged is in none of them: it may be there or not.
type promises struct {
	first     string // the API key of the first start
	origin    string
	intents   map[string]int64  // positions by intent_id
	executors map[string]string // public keys; of revoked ones empty
	apikeys   map[string]string // API keys by id
	dead      []string          // revoked API keys
	planner   []string          // keys of the planner that are made and not revoked
	revoked   []string          // keys that are
	artifacts map[string][]byte // by digest
	serial    int               // of names
}

func newPromises() *promises {
	return &promises{intents: map[string]int64{}, executors: map[string]string{}, apikeys: map[string]string{}, artifacts: map[string][]byte{}}
}

// catalog writes rows for so many executors of vendors.
func (c *cuts) catalog(n int) {
	c.t.Helper()
	c.rows = c.t.TempDir()
	for i := range n {
		typ := fmt.Sprintf("x.a%d.echo", i)
		row := fmt.Sprintf(`{"type":%q,"title":"t","capability":"x.a%d:echo","signed_by":["operator"],"executor":"x-a%d","effect":"pure","args_schema":{"type":"object"},"result_schema":{"type":"object"}}`, typ, i, i)
		if err := os.WriteFile(filepath.Join(c.rows, typ+".json"), []byte(row), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

// work has an operator, and half of the time a user, at work until it is stopped.
// A user has the disk synced all the time, which helps whoever forgot to.
func (c *cuts) work() (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	var working sync.WaitGroup
	seed, user := c.random.Uint64(), c.random.IntN(2) == 0 // before others draw
	working.Go(func() {
		for ctx.Err() == nil && !c.dark.Load() {
			c.administer(ctx)
		}
	})
	if !user {
		return func() { cancel(); working.Wait() }
	}
	working.Go(func() {
		for n := 0; ctx.Err() == nil && !c.dark.Load(); n++ {
			c.keep(ctx, bytes.Repeat(fmt.Appendf(nil, "%d-%d ", seed, n), 1+n*977%5000))
		}
	})
	return func() { cancel(); working.Wait() }
}

// administer does one thing that an operator does.
func (c *cuts) administer(ctx context.Context) {
	c.serial++
	name := "n" + strconv.Itoa(c.serial)
	at := []string{"--url", c.url, "--json"}
	switch c.random.IntN(8) {
	case 0, 1, 2:
		c.executor(ctx, "x-a"+strconv.Itoa(c.random.IntN(3)))
	case 3:
		var made struct{ Key string }
		if c.intent(ctx, &made, append([]string{"apikey", "create", name, "--user", "local", "--role", "user"}, at...)...) {
			c.apikeys[name] = made.Key
		}
	case 4:
		for id, key := range c.apikeys {
			delete(c.apikeys, id)
			if c.intent(ctx, nil, append([]string{"apikey", "revoke", id}, at...)...) {
				c.dead = append(c.dead, key)
			}
			break
		}
	case 5:
		c.intent(ctx, nil, append([]string{"tenant", "add", name}, at...)...)
	case 6:
		c.plannerKey(ctx, at)
	default:
		c.intent(ctx, nil, append([]string{"policy", "push", filepath.Join("..", "..", "policies", "writ"), "--revision", strconv.Itoa(c.serial)}, at...)...)
	}
}

// executor issues credentials, or revokes those that are there.
func (c *cuts) executor(ctx context.Context, name string) {
	public := c.executors[name]
	delete(c.executors, name)
	if public != "" {
		if _, ok := c.writ(ctx, "admin", "executor", "revoke", name); ok {
			c.executors[name] = ""
		}
		return
	}
	out := filepath.Join(c.t.TempDir(), "seed")
	if _, ok := c.writ(ctx, "admin", "executor", "issue", name, "--out", out, "--catalog", c.rows); !ok {
		return
	}
	seed, err := os.ReadFile(out)
	if err != nil {
		c.t.Error(err)
		return
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		c.t.Error(err)
		return
	}
	if c.executors[name], err = pair.PublicKey(); err != nil {
		c.t.Error(err)
	}
}

// plannerKey gives the planner a new key, or revokes its oldest.
func (c *cuts) plannerKey(ctx context.Context, at []string) {
	if len(c.planner) < 2 {
		var made struct{ KID string }
		if c.intent(ctx, &made, append([]string{"admin", "keys", "rotate", "planner"}, at...)...) {
			c.planner = append(c.planner, made.KID)
		}
		return
	}
	oldest := c.planner[0]
	c.planner = c.planner[1:]
	if c.intent(ctx, nil, append(append([]string{"admin", "keys", "revoke"}, at...), "--data", c.dir, "--", oldest)...) {
		c.revoked = append(c.revoked, oldest)
	}
}

// intent has the command line sign an intent, and remembers where it was recorded.
func (c *cuts) intent(ctx context.Context, out any, args ...string) bool {
	raw, ok := c.writ(ctx, args...)
	if !ok {
		return false
	}
	var a struct {
		IntentID string `json:"intent_id"`
		Position *int64
	}
	err := json.Unmarshal(raw, &a)
	if err == nil && out != nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil || a.Position == nil {
		c.t.Errorf("writ %v: %v: %s", args, err, raw)
		return false
	}
	c.intents[a.IntentID] = *a.Position
	return true
}

// writ runs a command on the data directory and returns whether it was acknowledged.
// While there is power it has to be.
func (c *cuts) writ(ctx context.Context, args ...string) (out []byte, ok bool) {
	exe, err := os.Executable()
	if err != nil {
		c.t.Error(err)
		return nil, false
	}
	if !slices.Contains(args, "--data") {
		args = append(args, "--data", c.dir)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args = append([]string{"writ"}, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if out, err = cmd.Output(); err == nil {
		c.acked++
		select {
		case c.acknowledged <- struct{}{}:
		default: // nobody waits for it
		}
		return out, true
	}
	if ctx.Err() == nil && !c.dark.Load() {
		c.t.Errorf("writ %s: %v: %s%s", strings.Join(args, " "), err, out, &errs)
	}
	return nil, false
}

// keep uploads bytes and remembers them once they are acknowledged.
func (c *cuts) keep(ctx context.Context, content []byte) {
	status, body := c.request(ctx, http.MethodPost, "/agent/artifacts", c.key, content)
	if status != http.StatusCreated {
		if status != 0 && status != http.StatusTooManyRequests && !c.dark.Load() {
			c.t.Errorf("upload: HTTP %d: %s", status, body)
		}
		pause(ctx) // they are metered
		return
	}
	if _, digest, ok := strings.Cut(string(body), "cas://"); ok {
		digest, _, _ = strings.Cut(digest, `"`)
		c.artifacts[digest] = content
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

// request is one by an API key; status 0 where there is no answer.
func (c *cuts) request(ctx context.Context, method, path, key string, content []byte) (status int, body []byte) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(content))
	if err != nil {
		c.t.Error(err)
		return 0, nil
	}
	req.Header.Set("X-Api-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil
	}
	return resp.StatusCode, body
}
