// Package client talks to a gateway over HTTP as any application would.
package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/problem"
)

// Client of one gateway, with one API key.
type Client struct {
	URL string // http://host:port
	Key string

	SkillKey string // the caller's own, for skill servers that take it; empty: none

	Agent string // that Run asks; empty: the server chooses
}

// Error is a problem that the gateway or the router answered (RFC 9457). An
// answer of something between, such as a proxy, has its status line as code.
type Error struct{ problem.Problem }

func (e *Error) Error() string {
	s := e.Problem.Error()
	if e.Pointer != "" {
		s += " (at " + e.Pointer + ")"
	}
	if e.Hint != "" {
		s = strings.TrimSuffix(s, ".") + "; " + e.Hint
	}
	return s
}

// Frame of a stream: Data is that of its kind (package bus).
type Frame struct {
	ID    string
	Event string
	Data  json.RawMessage
}

// ErrCut reports that a stream ended before its last frame. The plan continues.
var ErrCut = errors.New("the connection broke off before the answer; the plan goes on")

// ErrNoAnswer reports that nobody answers at the URL, or that there is no URL.
var ErrNoAnswer = errors.New("no answer")

// Run asks a question and yields the frames of its turn until the last one:
// done, or held. It returns the plan's id. fn returning an error ends it.
func (c Client) Run(ctx context.Context, message string, fn func(Frame) error) (plan string, err error) {
	question := map[string]any{"message": message, "stream": true}
	if c.Agent != "" {
		question["agent"] = c.Agent
	}
	return c.ask(ctx, "/agent/run", question, nil, fn)
}

// Chat is Run in a session. The agent that answers where none is named is that of Run, too.
func (c Client) Chat(ctx context.Context, session, message string, fn func(Frame) error) (plan string, err error) {
	if c.Agent == "" {
		return c.ask(ctx, "/agent/run", map[string]any{"message": message, "stream": true, "session_id": session}, nil, fn)
	}
	said := map[string]string{"id": rand.Text(), "role": "user", "content": message}
	return c.ask(ctx, "/chat/"+url.PathEscape(session), map[string]any{"messages": []any{said}}, map[string]string{"X-Agent-Schema-Name": c.Agent}, fn)
}

func (c Client) ask(ctx context.Context, path string, question any, header map[string]string, fn func(Frame) error) (plan string, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return "", err
	}
	resp, err := c.do(ctx, http.MethodPost, path, body, header)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	plan = resp.Header.Get("X-Plan-Id")
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
		if err != nil {
			return plan, err
		}
		return plan, fn(Frame{Event: "held", Data: raw})
	}
	return plan, follow(resp.Body, fn)
}

// Watch yields the frames of a plan's turn until the last one: those after a frame, or
// from the beginning, as far as they are still there.
func (c Client) Watch(ctx context.Context, plan, after string, fn func(Frame) error) error {
	resp, err := c.do(ctx, http.MethodGet, "/agent/plans/"+url.PathEscape(plan)+"/events", nil, map[string]string{"Last-Event-ID": after})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return follow(resp.Body, fn)
}

// follow reads a stream to its last frame.
func follow(r io.Reader, fn func(Frame) error) error {
	last := ""
	err := frames(r, func(f Frame) error {
		last = f.Event
		return fn(f)
	})
	if last != string(bus.FrameDone) && last != string(bus.FramePendingApproval) && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) {
		return ErrCut
	}
	return err
}

// frames reads the frames of a turn: the data of each stands in its event's.
func frames(r io.Reader, fn func(Frame) error) error {
	return events(r, func(f Frame) error {
		var body struct {
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(f.Data, &body); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		f.Data = body.Data
		return fn(f)
	})
}

// events reads server-sent events (WHATWG HTML, section 9.2): an event ends with an empty line, one
// without data is ignored, and so is one cut off by the end of the stream.
func events(r io.Reader, fn func(Frame) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), 8<<20)
	var f Frame
	for lines.Scan() {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if len(f.Data) > 0 {
				if err := fn(f); err != nil {
					return err
				}
			}
			f = Frame{}
		case field == "id":
			f.ID = value
		case field == "event":
			f.Event = value
		case field == "data":
			f.Data = append(append(f.Data, value...), '\n')
		}
	}
	return lines.Err()
}

// Get reads a JSON document of the API.
func (c Client) Get(ctx context.Context, path string, out any) error {
	return c.Ask(ctx, http.MethodGet, path, nil, out)
}

// Post sends a JSON document and reads the answer.
func (c Client) Post(ctx context.Context, path string, in, out any) error {
	return c.Ask(ctx, http.MethodPost, path, in, out)
}

// Ask sends a request, with a JSON document unless in is nil, and reads the document that
// answers it.
func (c Client) Ask(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	resp, err := c.do(ctx, method, path, body, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(out)
}

// Artifact writes the bytes of cas://sha256:<hex> to w. Bytes with another digest
// are an error.
func (c Client) Artifact(ctx context.Context, artifact string, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, bus.ArtifactURL(artifact), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, h), resp.Body); err != nil {
		return err
	}
	if got := "cas://sha256:" + hex.EncodeToString(h.Sum(nil)); got != artifact {
		return fmt.Errorf("the bytes are those of %s, not of %s", got, artifact)
	}
	return nil
}

// Upload stores data as an artifact, and returns its address.
func (c Client) Upload(ctx context.Context, name, mediaType string, data []byte) (artifact string, err error) {
	resp, err := c.do(ctx, http.MethodPost, "/agent/artifacts?name="+url.QueryEscape(name), data, map[string]string{"Content-Type": mediaType})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var kept struct {
		Artifact string `json:"artifact"`
	}
	err = json.NewDecoder(resp.Body).Decode(&kept)
	return kept.Artifact, err
}

// Submit sends a signed intent to the router's entrance and returns the answer
// or problem as received.
func (c Client) Submit(ctx context.Context, signed []byte, query string) (status int, body []byte, err error) {
	resp, err := c.do(ctx, http.MethodPost, "/v1/intents"+query, signed, nil)
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.Status, nil, err
	}
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	return resp.StatusCode, body, err
}

// clients by URL, so that connections are used again.
var (
	clientsMu sync.Mutex
	clients   = map[string]*http.Client{}
)

// Expect has the server at a URL prove that it has the key of a certificate, from a PEM file, instead
// of a name that others vouch for.
func Expect(url, cert string) error {
	raw, err := os.ReadFile(cert) //nolint:gosec // G304: the operator of this data directory names it
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", url, err)
	}
	t := egress.Transport(url)
	if t.TLSClientConfig, err = egress.TLSByKey(raw); err != nil {
		return fmt.Errorf("certificate of %s: %s: %w", url, cert, err)
	}
	clientsMu.Lock()
	defer clientsMu.Unlock()
	clients[url] = egress.Client(t)
	return nil
}

func clientOf(url string) *http.Client {
	clientsMu.Lock()
	defer clientsMu.Unlock()
	if clients[url] == nil {
		clients[url] = egress.Client(egress.Transport(url))
	}
	return clients[url]
}

func (c Client) do(ctx context.Context, method, path string, body []byte, header map[string]string) (*http.Response, error) {
	resp, err := c.send(ctx, method, path, body, header)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	defer resp.Body.Close()
	e := &Error{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(e); err != nil || e.Code == "" {
		e = &Error{problem.Problem{Code: intents.Code(resp.Status)}}
	}
	e.Status = resp.StatusCode
	return nil, e
}

// authorize sets the headers of the keys. Key may be an access token: a JWT, as no API key is.
func (c Client) authorize(h http.Header) {
	switch {
	case strings.Count(c.Key, ".") == 2:
		h.Set("Authorization", "Bearer "+c.Key)
	case c.Key != "":
		h.Set("X-Api-Key", c.Key)
	}
	if c.SkillKey != "" {
		h.Set("X-Skill-Api-Key", c.SkillKey)
	}
}

// send sends a request, whatever the answer is.
func (c Client) send(ctx context.Context, method, path string, body []byte, header map[string]string) (*http.Response, error) {
	if c.URL == "" {
		return nil, fmt.Errorf("%w: no writ is running here", ErrNoAnswer)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	c.authorize(req.Header)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := clientOf(c.URL).Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w from %s: %w", ErrNoAnswer, c.URL, egress.Plain(err))
	}
	return resp, nil
}
