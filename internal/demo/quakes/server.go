// Package quakes is the skill server of the demo: a week of real earthquakes
// as the USGS published it, and a skill that ranks rows. It speaks MCP over
// streamable HTTP and needs neither network nor key.
//
// Nothing outside this folder knows about earthquakes: agents meet the server
// as they meet any other, by the words of its manifests and its schemas.
//
//	earthquake_feed {}                                  -> the feed, 1.2 MB, one feature a line
//	rank {rows, by, descending: true}                   -> {rows: [{…, rank}]}
//
// Every tool only reads: readOnlyHint and idempotentHint are true.
package quakes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

// Path is where the handler answers.
const Path = "/mcp"

// Version is the server's version in the handshake.
const Version = "1.0.0"

// headerTimeout bounds how long a client may take to send its request header.
const headerTimeout = 10 * time.Second

// Handler answers MCP requests at Path, in both protocol eras and without
// sessions. It is safe for concurrent use and has no goroutine.
func Handler() (http.Handler, error) {
	data, err := Feed()
	if err != nil {
		return nil, err
	}
	s := server.NewMCPServer("writ-demo-skills", Version, server.WithToolCapabilities(false))
	skills := []skill{feedSkill(data), rankSkill()}
	for _, sk := range skills {
		s.AddTool(sk.tool(), sk.handle)
	}
	mux := http.NewServeMux()
	mux.Handle(Path, server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	return mux, nil
}

// Serve listens on a free loopback port and answers until ctx ends, then
// closes every connection. It returns once the port is open, with the URL of
// the MCP endpoint.
func Serve(ctx context.Context) (url string, err error) {
	h, err := Handler()
	if err != nil {
		return "", err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("demo skill server: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	go func() { _ = srv.Serve(l) }() // ends with srv.Close, so with ctx
	return "http://" + l.Addr().String() + Path, nil
}
