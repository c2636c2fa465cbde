package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/intents"
)

// journal is a log that a test reads while a process writes to it.
type journal struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{}
}

func newJournal() *journal { return &journal{more: make(chan struct{}, 1)} }

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(p))
	select {
	case j.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// wait returns the first line that holds s.
func (j *journal) wait(s string) string {
	for {
		j.mu.Lock()
		for _, l := range j.lines {
			if strings.Contains(l, s) {
				j.mu.Unlock()
				return l
			}
		}
		j.mu.Unlock()
		<-j.more
	}
}

func number(t *testing.T, c *Client, tool string) int {
	t.Helper()
	res, err := c.Call(t.Context(), tool, nil, CallMeta{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(res.Text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestChildEnvironment(t *testing.T) {
	t.Setenv("WRIT_SECRET", "hunter2")
	t.Setenv("LANG", "C.UTF-8")
	c := dial(t, self(t, "API_TOKEN=for the skill", "HOME=/nowhere"), quick())
	res, err := c.Call(t.Context(), "environment", nil, CallMeta{})
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"PATH": true, "HOME": true, "LANG": true, "TMPDIR": true, stdioServer: true, "API_TOKEN": true}
	for line := range strings.Lines(res.Text) {
		if name, _, _ := strings.Cut(line, "="); !allowed[name] {
			t.Errorf("the child sees %s", name)
		}
	}
	for _, want := range []string{"LANG=C.UTF-8", "HOME=/nowhere", "API_TOKEN=for the skill"} {
		if !strings.Contains("\n"+res.Text+"\n", "\n"+want+"\n") {
			t.Errorf("the child does not see %s", want)
		}
	}
}

func TestChildStderrIsEscaped(t *testing.T) {
	j := newJournal()
	opt := quick()
	opt.Log = slog.New(slog.NewJSONHandler(j, nil))
	dial(t, self(t), opt)
	line := j.wait("ready")
	if !strings.Contains(line, `ready \\x1b[31mred\\a`) {
		t.Errorf("logged %s", line)
	}
}

func TestStderrIsBounded(t *testing.T) {
	var log bytes.Buffer
	long := strings.Repeat("y", 5*maxAside)
	text := long + "\n" + strings.Repeat("line\n", 2*maxAsides)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.WriteString(text)
		_ = w.Close()
	}()
	a := newAsides(slog.New(slog.NewTextHandler(&log, nil)), (&Settings{}).hider())
	drain(r, func(line string) {
		a.say(t.Context(), "", ServerMessage{Level: intents.LevelInfo, Kind: "stderr", Text: line})
	})
	if got := strings.Count(log.String(), "\n"); got != maxAsides+1 {
		t.Errorf("%d lines logged, want %d and a note", got, maxAsides)
	}
	if log.Len() > maxAsides*120+2*maxAside {
		t.Errorf("%d bytes logged", log.Len())
	}
}

func TestChildIsKilledWithItsChildren(t *testing.T) {
	for _, mode := range []string{"yes", "stubborn"} {
		t.Run(mode, func(t *testing.T) {
			c := dial(t, self(t, stdioServer+"="+mode), quick())
			pid, grandchild := number(t, c, "pid"), number(t, c, "spawn")
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, 0); err == nil {
				t.Error("the child outlives its client")
			}
			// The kill has been sent; it takes effect when the kernel gets to it.
			for end := time.Now().Add(30 * time.Second); alive(grandchild); runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatal("a process that the child started outlives the client")
				}
			}
		})
	}
}

// alive reports whether a process runs; a killed one that nobody has reaped
// yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

func TestChildRestarts(t *testing.T) {
	c := dial(t, self(t), quick())
	first := number(t, c, "pid")
	_, err := c.Call(t.Context(), "die", nil, CallMeta{})
	if e := wantKind(t, err, ErrUnavailable); e.Undelivered {
		t.Error("the call was delivered: it killed the server")
	}
	if again := number(t, c, "pid"); again == first {
		t.Error("the same process answers after it died")
	}
}

func TestRetrySafeCallSurvivesADeadChild(t *testing.T) {
	c := dial(t, self(t), quick())
	pid := number(t, c, "pid")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), "pair", nil, CallMeta{RetrySafe: true}); err != nil {
		t.Error(err)
	}
}

// noise is what servers write to standard output beside messages.
var noise = []string{
	"Server started", "", "\r50%\r100%", "\xff\xfe", "null", "7", `"text"`, "[]", "{}", `{"level":"info","msg":"an open \" quote`, `{"id":null}`, `{"jsonrpc":"2.0","id":"x","result":{}}`,
	`{"jsonrpc":"2.0","id":99999,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","method":7}`, `{"jsonrpc":"2.0","method":"notifications/unknown"}`, `{"jsonrpc":"2.0","method":"unknown","id":7}`,
}

// noisyServer surrounds its answers with noise. Its tool is another one after each call.
func noisyServer() {
	calls := 0
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &req) != nil {
			continue
		}
		result := ""
		switch req.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"x","version":"1"}}`
		case "tools/list":
			result = fmt.Sprintf(`{"tools":[{"name":"act","description":"version %d","inputSchema":{"type":"object"}}]}`, calls)
		case "tools/call":
			calls++
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			result = `{"content":[],"structuredContent":{"mean":NaN}}`
		}
		fmt.Println(strings.Join(noise, "\n"))
		switch {
		case result != "":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result)
		case len(req.ID) > 0:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", req.ID)
		}
	}
}

// TestNoisyServer: what is no message on standard output is passed over, and a tool that its server says
// to have changed is not called as it was.
func TestNoisyServer(t *testing.T) {
	c := dial(t, self(t, stdioServer+"=noisy"), quick())
	list, err := c.Manifests(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	meta := CallMeta{Digest: list[0].Digest()}
	if res, err := c.Call(t.Context(), "act", nil, meta); err != nil || string(res.Data) != `{"mean":"NaN"}` {
		t.Errorf("%+v, %v", res, err)
	}
	_, err = c.Call(t.Context(), "act", nil, meta)
	if e := wantKind(t, err, ErrChanged); !e.Undelivered {
		t.Error("it was called")
	}
}
