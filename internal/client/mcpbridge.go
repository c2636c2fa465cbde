package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/internal/clock"
)

// maxMCPLine bounds a message of a client on the standard streams, in bytes.
const maxMCPLine = 4 << 20

// Bridge carries messages of the Model Context Protocol between a client on the standard
// streams, one message a line, and the server at /mcp. When the server has started anew,
// so does the session: the client does not notice. It ends with the client's input, once
// all requests have their answers.
func (c Client) Bridge(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{c: c, out: out}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMCPLine)
	var waiting sync.WaitGroup
	for lines.Scan() {
		m := mcpMessage{raw: bytes.Clone(lines.Bytes())}
		if len(bytes.TrimSpace(m.raw)) == 0 {
			continue
		}
		_ = json.Unmarshal(m.raw, &m) // the server refuses invalid messages
		switch {
		case m.Method == "initialize":
			b.initialize(ctx, m)
		case m.ID == nil || m.Method == "": // in their order
			b.send(ctx, m)
		case m.Method == "subscriptions/listen": // ends with the client
			go b.send(ctx, m)
		default:
			waiting.Go(func() { b.send(ctx, m) })
		}
	}
	waiting.Wait()
	if session, _ := b.now(); session != "" {
		if resp, err := c.mcp(ctx, http.MethodDelete, nil, b.header(mcpMessage{})); err == nil {
			_ = resp.Body.Close()
		}
	}
	return lines.Err()
}

// mcpMessage is the part of a message that the bridge reads.
type mcpMessage struct {
	raw    []byte
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

type bridge struct {
	c Client

	writing sync.Mutex
	out     io.Writer

	beginning sync.Mutex // one session begins at a time
	first     *mcpMessage

	mu               sync.Mutex
	session, version string
}

func (b *bridge) now() (session, version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session, b.version
}

// header returns the headers of a message: those of the session or, without one, those from the
// message itself.
func (b *bridge) header(m mcpMessage) map[string]string {
	h := map[string]string{"Accept": "application/json, text/event-stream"}
	if v := m.Params.Meta.Version; v != "" {
		h["Mcp-Protocol-Version"], h["Mcp-Method"] = v, m.Method
		if name := m.Params.Name + m.Params.URI; name != "" {
			h["Mcp-Name"] = name
		}
		return h
	}
	h["Mcp-Session-Id"], h["Mcp-Protocol-Version"] = b.now()
	for name, value := range h {
		if value == "" {
			delete(h, name)
		}
	}
	return h
}

// initialize begins the client's session, and listens for its notifications.
func (b *bridge) initialize(ctx context.Context, m mcpMessage) {
	b.beginning.Lock()
	defer b.beginning.Unlock()
	b.first = &m
	b.begin(ctx, m, b.write)
}

// begin begins a session; answer gets the server's messages.
func (b *bridge) begin(ctx context.Context, m mcpMessage, answer func([]byte)) {
	b.mu.Lock()
	b.session, b.version = "", ""
	b.mu.Unlock()
	resp, err := b.c.mcp(ctx, http.MethodPost, m.raw, b.header(m))
	if err != nil {
		b.failed(m, err)
		return
	}
	session := resp.Header.Get("Mcp-Session-Id")
	b.read(resp, func(raw []byte) {
		var said struct {
			Result struct {
				Version string `json:"protocolVersion"`
			} `json:"result"`
		}
		_ = json.Unmarshal(raw, &said) // without a version none is sent
		b.mu.Lock()
		b.session, b.version = session, said.Result.Version
		b.mu.Unlock()
		answer(raw)
	})
	if session != "" {
		go b.listen(ctx, session)
	}
}

// restart begins a session in the place of one that the server does not know any more.
func (b *bridge) restart(ctx context.Context, gone string) bool {
	b.beginning.Lock()
	defer b.beginning.Unlock()
	session, _ := b.now()
	if session == gone && b.first != nil {
		b.begin(ctx, *b.first, func([]byte) {})
		session, _ = b.now()
		begun := mcpMessage{raw: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)}
		if resp, err := b.c.mcp(ctx, http.MethodPost, begun.raw, b.header(begun)); err == nil {
			_ = resp.Body.Close()
		}
	}
	return session != "" && session != gone
}

// send sends a message and writes the answer.
func (b *bridge) send(ctx context.Context, m mcpMessage) {
	session, _ := b.now()
	resp, err := b.c.mcp(ctx, http.MethodPost, m.raw, b.header(m)) //nolint:bodyclose // read does
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status == http.StatusNotFound && session != "" && m.Params.Meta.Version == "" && b.restart(ctx, session) {
		resp, err = b.c.mcp(ctx, http.MethodPost, m.raw, b.header(m)) //nolint:bodyclose // read does
	}
	if err != nil {
		b.failed(m, err)
		return
	}
	b.read(resp, b.write)
}

// listen writes messages sent without a request, as long as the session is the current one.
func (b *bridge) listen(ctx context.Context, session string) {
	for {
		if now, _ := b.now(); now != session {
			return
		}
		resp, err := b.c.mcp(ctx, http.MethodGet, nil, b.header(mcpMessage{}))
		if _, ok := errors.AsType[*refusedError](err); ok {
			return
		}
		if err == nil {
			b.read(resp, b.write)
		}
		if clock.Sleep(ctx, time.Second) != nil {
			return
		}
	}
}

// read gives each message of an answer: one document, or a stream of them.
func (b *bridge) read(resp *http.Response, message func([]byte)) {
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		if raw, err := io.ReadAll(resp.Body); err == nil && len(bytes.TrimSpace(raw)) > 0 {
			message(raw)
		}
		return
	}
	_ = events(resp.Body, func(f Frame) error { // a stream that breaks off has ended
		message(f.Data)
		return nil
	})
}

// failed answers a request that the server has not answered.
func (b *bridge) failed(m mcpMessage, err error) {
	if m.ID == nil || m.Method == "" {
		return
	}
	said := json.RawMessage(nil)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		said = refused.rpc
	}
	if said == nil {
		says := err.Error()
		if errors.Is(err, ErrNoAnswer) {
			says += "; nothing was begun: start writ there (writ up), and ask again"
		}
		said, _ = json.Marshal(map[string]any{"code": -32000, "message": says})
	}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": said})
	b.write(raw)
}

// write writes a message as a line.
func (b *bridge) write(raw []byte) {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return
	}
	line.WriteByte('\n')
	b.writing.Lock()
	defer b.writing.Unlock()
	_, _ = b.out.Write(line.Bytes()) // a client that is gone reads nothing
}

// refusedError is an answer that is none of a request: its error of JSON-RPC, if it has one.
type refusedError struct {
	status int
	rpc    json.RawMessage
}

func (r *refusedError) Error() string { return fmt.Sprintf("the server answers %d", r.status) }

// mcp sends one request to the server of this protocol.
func (c Client) mcp(ctx context.Context, method string, body []byte, header map[string]string) (*http.Response, error) {
	resp, err := c.send(ctx, method, "/mcp", body, header)
	if err != nil || resp.StatusCode < http.StatusMultipleChoices {
		return resp, err
	}
	defer resp.Body.Close()
	refused := &refusedError{status: resp.StatusCode}
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&said) // or the status alone
	refused.rpc = said.Error
	return nil, refused
}
