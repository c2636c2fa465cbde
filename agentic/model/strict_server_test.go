package model

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// answer is what the strict server's model says.
type answer struct {
	text, refusal, finish string
	calls                 []string // arguments of calls of look
	final                 string   // arguments of a call of choose
	dropsUsage            bool
	busy, hangs           bool // instead of all that
}

// strict is the server of a provider, without a network: it serves the client's transport.
type strict struct {
	t       *testing.T
	p       *provider
	mu      sync.Mutex
	answers []answer
	refused []string // what was refused
	last    body     // the last request that was not
	made    int      // calls
}

func (s *strict) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	out := &piped{header: http.Header{}, w: w, ready: make(chan struct{})}
	go func() {
		s.serve(out, req)
		out.WriteHeader(http.StatusOK)
		_ = w.Close() // never fails
	}()
	gone := req.Context().Done()
	go func() { // a client that leaves hears no more
		<-gone
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	select {
	case <-out.ready:
		return &http.Response{StatusCode: out.status, Header: out.header, Body: r, Request: req}, nil
	case <-gone:
		return nil, req.Context().Err()
	}
}

// piped is the response of a strict server.
type piped struct {
	header http.Header
	status int
	w      *io.PipeWriter
	once   sync.Once
	ready  chan struct{}
}

func (p *piped) Header() http.Header { return p.header }

func (p *piped) WriteHeader(status int) {
	p.once.Do(func() { p.status = status; close(p.ready) })
}

func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.w.Write(b)
}

func (s *strict) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := io.ReadAll(req.Body)
	var b body
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		s.t.Errorf("body: %v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	for _, r := range s.p.refusals {
		if r.finds(b) {
			s.refused = append(s.refused, r.what)
			w.WriteHeader(r.status)
			fmt.Fprint(w, r.text)
			return
		}
	}
	s.last = b
	if len(s.answers) == 0 {
		s.t.Errorf("a request too many: %s", raw)
		return
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	switch {
	case a.busy:
		s.p.busy(w)
	case a.hangs:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"well, "},"finish_reason":null}]}`+"\n\n")
		<-req.Context().Done()
	default:
		if b["stream"] != true {
			s.whole(w, a)
			return
		}
		s.stream(w, a)
	}
}

// whole answers a request that wants no stream.
func (s *strict) whole(w http.ResponseWriter, a answer) {
	s.made++
	fmt.Fprintf(w, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[
		{"id":"call%d","type":"function","function":{"name":"look","arguments":%q}}]},"finish_reason":"tool_calls"}],%s}`, s.made, a.calls[0], s.p.usage)
}

// stream answers in pieces, in the shapes of the provider.
func (s *strict) stream(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta, finish, more string) {
		chunk := fmt.Sprintf(`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]%s}`+"\n\n", delta, finish, more)
		for len(chunk) > 0 {
			n := len(chunk)
			if s.p.slow > 0 {
				n = 1
				time.Sleep(s.p.slow)
			}
			fmt.Fprint(w, chunk[:n])
			chunk = chunk[n:]
		}
	}
	number := func(shape string) string {
		s.made++
		return strings.ReplaceAll(shape, "#", fmt.Sprint(s.made%10))
	}
	quoted := func(text string) string { q, _ := json.Marshal(text); return string(q) }
	if s.p.thinks != "" {
		for range 2 {
			send(number(s.p.thinks)+`"content":null`, "null", "")
		}
	}
	if s.p.parts {
		send(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`, "null", "")
	}
	for piece := range strings.SplitAfterSeq(a.text, " ") {
		if s.p.parts {
			send(`"content":[{"type":"text","text":`+quoted(piece)+`}]`, "null", "")
		} else {
			send(`"content":`+quoted(piece), "null", "")
		}
	}
	if a.refusal != "" {
		send(`"refusal":`+quoted(a.refusal), "null", "")
	}
	name, calls := "look", a.calls
	if a.final != "" {
		name, calls = "choose", []string{a.final}
	}
	for i, arguments := range calls {
		send(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%s,%s"type":"function","function":{"name":%q,"arguments":%s}}]`,
			i, quoted(number(s.p.id)), number(s.p.signs), name, quoted(arguments)), "null", "")
	}
	finish := s.p.stop
	switch {
	case a.finish != "":
		finish = a.finish
	case len(calls) > 0:
		finish = s.p.called
	}
	usage := ""
	if !a.dropsUsage {
		usage = "," + s.p.usage
	}
	send("", quoted(finish), usage)
	fmt.Fprint(w, "data: [DONE]\n\n")
}
