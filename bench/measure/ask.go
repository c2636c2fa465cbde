package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/router"
)

// askAgents are an agent that asks another, the one that it asks, and one that calls a tool.
var askAgents = map[string]string{
	"desk":   "name: desk\ndescription: Asks.\nsub_agents: [shop]\n",
	"shop":   "name: shop\ndescription: Answers.\n",
	"caller": "name: caller\ndescription: Calls a tool.\ntools: [{server: quakes, name: rank}]\n",
}

// ask measures what it takes to have an agent asked beside the call of a tool of an MCP
// server: the time from the reply of a model that asks, or calls, to the request that tells
// it what came of that. Models answer at once, and the tool is a small one, so what is left is
// dispatch.
func ask(ctx context.Context, o Options) ([]Row, error) {
	return within(func(dir string) (rows []Row, err error) {
		for name, text := range askAgents {
			if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		url, err := quakes.Serve(ctx)
		if err != nil {
			return nil, err
		}
		m := &prompt{}
		n, end, err := node.Start(ctx, node.Config{
			Dir: filepath.Join(dir, "data"), Agents: dir, Listen: "127.0.0.1:0", Skills: []string{"name=quakes trust=true -- " + url}, Model: m,
			Limits: node.Limits{Requests: -1, Rates: router.Rates{Signer: -1, Tenant: -1}}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
		key, err := n.LocalKey()
		if err != nil {
			return nil, err
		}
		c := client.Client{URL: "http://" + n.Addr().String(), Key: key}
		took, err := inTurns(ctx, o.Time, m.turn(ctx, c, "caller"), m.turn(ctx, c, "desk"))
		if err != nil {
			return nil, err
		}
		calls, asks := took[0], took[1]
		return []Row{
			newRow("ask_p50", median(asks), median(calls), "ms", int64(len(asks))),
			newRow("ask_p95", high(asks), high(calls), "ms", int64(len(asks))),
		}, nil
	})
}

// prompt is a model that answers at once: it makes one call and, told what came of it, ends.
type prompt struct {
	mu       sync.Mutex // guards the rest
	calledAt time.Time  // when it made the call
	took     float64    // milliseconds until it was told what came of that
}

func (*prompt) Name() string { return "bench:prompt" }

func (m *prompt) Respond(_ context.Context, req model.Request, _ func(model.Event)) (*model.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	done := &model.Response{Text: "Done.", Model: m.Name()}
	switch last := req.Messages[len(req.Messages)-1]; {
	case req.Agent == "shop":
		return done, nil
	case last.Role == model.RoleTool:
		m.took = sinceMS(m.calledAt)
		return done, nil
	}
	call := model.Call{ID: "c1", Name: "rank", Arguments: `{"rows":[{"n":1}],"by":"n"}`}
	if req.Agent == "desk" {
		call.Name, call.Arguments = "ask_shop", `{"input_text":"What is there?"}`
	}
	m.calledAt, m.took = time.Now(), 0
	return &model.Response{Calls: []model.Call{call}, Model: m.Name()}, nil
}

// turn is one turn of an agent; its figure is how long the call of its model took.
func (m *prompt) turn(ctx context.Context, c client.Client, agent string) func() (float64, error) {
	c.Agent = agent
	return func() (float64, error) {
		var t client.Turn
		if _, err := c.Run(ctx, "What is there?", t.Take); err != nil {
			return 0, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if t.Status != "complete" || m.took == 0 {
			return 0, fmt.Errorf("the turn of %s ended as %s: %s", agent, t.Status, t.Response)
		}
		return m.took, nil
	}
}
