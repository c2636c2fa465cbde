package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"

	"aob.dev/writ/gateway"
	"aob.dev/writ/internal/problem"
)

// reply records an answer of the API within this process.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
	past   http.ResponseWriter // receives a successful answer as a stream; nil: it is recorded
}

// Header implements http.ResponseWriter.
func (a *reply) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *reply) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	if a.status >= http.StatusBadRequest {
		a.past = nil
	}
	if a.past != nil {
		maps.Copy(a.past.Header(), a.header)
		a.past.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (a *reply) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.past != nil {
		return a.past.Write(b)
	}
	return a.body.Write(b)
}

func (a *reply) decode(out any) error {
	if err := json.Unmarshal(a.body.Bytes(), out); err != nil {
		return fmt.Errorf("console: answer of the interface: %w", err)
	}
	return nil
}

// fetch sends a request to the API. The rate limit counts the person's pages, not the requests
// behind them.
func (c *Console) fetch(ctx context.Context, who credentials, method, path string, in any) (*reply, error) {
	a := &reply{header: http.Header{}}
	return a, c.serve(ctx, who, method, path, in, true, a)
}

// serve has the API of this process answer; a refusal is the error.
func (c *Console) serve(ctx context.Context, who credentials, method, path string, in any, counted bool, a *reply) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return err
	}
	r.RequestURI, r.RemoteAddr = path, who.address
	r.Header.Set("X-Api-Key", who.key)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if who.user != "" {
		r.Header.Set("X-User-Id", who.user)
	}
	if counted {
		r = gateway.Paced(r)
	}
	c.API.ServeHTTP(a, r)
	if a.status >= http.StatusBadRequest {
		p := &problem.Problem{}
		if err := a.decode(p); err != nil {
			return err
		}
		p.Status = a.status
		return p
	}
	return nil
}
