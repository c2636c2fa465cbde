package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/coder/websocket"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/problem"
)

// maxLogLine bounds a message of a log, in bytes.
const maxLogLine = 64 << 10

// ErrLogCut reports that a log broke off: another stream continues after the last cursor.
var ErrLogCut = errors.New("the connection broke off before the end of the log")

// Logs yields the log of a run: the lines behind a cursor that there are and, with follow, those
// that come until the run ends.
func (c Client) Logs(ctx context.Context, of catalog.LogsStream, after string, follow bool, fn func(cursor string, line json.RawMessage) error) error {
	var made catalog.LogsStreamResult
	if err := c.Post(ctx, "/v1/logs", of, &made); err != nil {
		return err
	}
	return c.Stream(ctx, made.StreamURL, after, follow, fn)
}

// Stream opens the address that logs.stream gave. The key is sent to the client's own URL alone,
// whatever host the address names.
func (c Client) Stream(ctx context.Context, address, after string, follow bool, fn func(cursor string, line json.RawMessage) error) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("address of the log: %w", err)
	}
	q := url.Values{}
	if after != "" {
		q.Set("after", after)
	}
	if !follow {
		q.Set("follow", "false")
	}
	at := c.URL + u.Path[max(strings.LastIndex(u.Path, "/v1/logs/"), 0):] + "?" + q.Encode()
	header := http.Header{}
	c.authorize(header)
	conn, resp, err := websocket.Dial(ctx, at, &websocket.DialOptions{HTTPClient: clientOf(c.URL), HTTPHeader: header}) //nolint:bodyclose // Dial has read and replaced it
	if err != nil {
		return refusedStream(c.URL, resp, err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxLogLine)
	for {
		_, raw, err := conn.Read(ctx)
		var end websocket.CloseError
		switch {
		case errors.As(err, &end) && end.Code == websocket.StatusNormalClosure:
			return nil
		case errors.As(err, &end) && end.Code == websocket.StatusPolicyViolation:
			return &Error{problem.Problem{Code: intents.RBACForbidden, Detail: end.Reason}}
		case err != nil:
			return fmt.Errorf("%w: %w", ErrLogCut, err)
		}
		var m struct {
			Cursor string          `json:"cursor"`
			Line   json.RawMessage `json:"line"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("a line of the log: %w", err)
		}
		if err := fn(m.Cursor, m.Line); err != nil {
			return err
		}
	}
}

// refusedStream is the reason why a stream was not opened: the server's problem, if it sent one.
func refusedStream(at string, resp *http.Response, err error) error {
	e := &Error{}
	if resp == nil || json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(e) != nil || e.Code == "" {
		return fmt.Errorf("%w from %s: %w", ErrNoAnswer, at, egress.Plain(err))
	}
	e.Status = resp.StatusCode
	return e
}
