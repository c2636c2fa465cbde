package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/node"
)

// mcpCallers call at once.
const mcpCallers = 16

// mcpTool is a small tool of the server that is called.
const mcpTool = "rank"

// mcpCalls measures calls of a tool of an MCP server through writ, each decided, committed,
// dispatched and recorded, at the rate limits that a node has by default; beside the same
// calls to the server itself, and through a proxy that only passes them on.
func mcpCalls(ctx context.Context, o Options) ([]Row, error) {
	return within(func(dir string) (rows []Row, err error) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		direct, err := quakes.Serve(ctx)
		if err != nil {
			return nil, err
		}
		proxy, err := passOn(ctx, direct)
		if err != nil {
			return nil, err
		}
		n, end, err := node.Start(ctx, node.Config{
			Dir: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", Skills: []string{"name=quakes trust=true -- " + direct},
			Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
		key, err := n.LocalKey()
		if err != nil {
			return nil, err
		}
		var crowds, single []*lane
		for _, to := range []struct{ url, key string }{{direct, ""}, {proxy, ""}, {"http://" + n.Addr().String() + "/mcp", key}} {
			clients, closing, err := mcpClients(ctx, to.url, to.key)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", to.url, err)
			}
			defer func() { err = errors.Join(err, closing()) }()
			do := func(ctx context.Context, caller int) error { return callTool(ctx, clients[caller]) }
			crowds = append(crowds, &lane{callers: mcpCallers, do: do})
			single = append(single, &lane{callers: 1, do: do})
		}
		if err := race(ctx, o.Time, crowds...); err != nil {
			return nil, err
		}
		var alone []func() (float64, error)
		for _, l := range single {
			alone = append(alone, timed(func() error { return l.do(ctx, 0) }))
		}
		took, err := inTurns(ctx, o.Time, alone...)
		if err != nil {
			return nil, err
		}
		for i, beside := range []string{"the server itself", "a plain proxy"} {
			rows = append(rows,
				newRow("calls, "+callers(mcpCallers)+" / "+beside, crowds[2].rate(), crowds[i].rate(), "per second", crowds[2].n),
				newRow("one call, p50 / "+beside, median(took[2]), median(took[i]), "ms", int64(len(took[2]))))
		}
		// Client and server are in this process, too: a call without anything between them is theirs.
		theirs := crowds[0].each()
		return append(rows, newRow("CPU of a call, "+callers(mcpCallers)+", without client and server / a plain proxy",
			crowds[2].each()-theirs, crowds[1].each()-theirs, "ms", crowds[2].n)), nil
	})
}

// mcpClients are as many clients as callers, each with a session of its own.
func mcpClients(ctx context.Context, url, key string) (all []*client.Client, closing func() error, err error) {
	closing = func() (err error) {
		for _, c := range all {
			err = errors.Join(err, c.Close())
		}
		return err
	}
	for range mcpCallers {
		c, err := mcpClient(ctx, url, key)
		if err != nil {
			return nil, nil, errors.Join(err, closing())
		}
		all = append(all, c)
	}
	return all, closing, nil
}

func mcpClient(ctx context.Context, url, key string) (*client.Client, error) {
	door := egress.Client(egress.Transport(url))
	c, err := client.NewStreamableHttpClient(url, transport.WithHTTPBasicClient(door), transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + key}))
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	_, err = c.Initialize(ctx, hello)
	return c, err
}

func callTool(ctx context.Context, c *client.Client) error {
	r, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{
		Name: mcpTool, Arguments: map[string]any{"rows": []any{map[string]any{"n": 1}}, "by": "n"},
	}})
	if err == nil && r.IsError {
		err = fmt.Errorf("%s: %v", mcpTool, r.Content)
	}
	return err
}

// passOn is a proxy in this process: a server that sends each call on to another and
// gives its answer back.
func passOn(ctx context.Context, to string) (url string, err error) {
	up, err := mcpClient(ctx, to, "")
	if err != nil {
		return "", err
	}
	s := server.NewMCPServer("proxy", "1", server.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool(mcpTool), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return up.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments}})
	})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.Handle(quakes.Path, server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _, _ = srv.Close(), up.Close() })
	go func() { _ = srv.Serve(l) }() // ends with srv.Close, so with ctx
	return "http://" + l.Addr().String() + quakes.Path, nil
}
