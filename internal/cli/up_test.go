package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"aob.dev/writ/internal/datadir"
)

// started is a `writ up` in this process.
type started struct {
	url  string
	stop func() result
}

var listening = regexp.MustCompile(`on (http://\S+) in`)

// start runs `writ up` and waits until it prints its address.
func start(t *testing.T, data string) started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer // read when Main has returned
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"up", "--data", data, "--listen", "127.0.0.1:0"},
			IO{In: strings.NewReader(""), Out: &out, Err: w, Env: func(string) string { return "" }})
		_ = w.Close()
	}()
	ready, text := make(chan string, 1), make(chan string, 1)
	go func() {
		var all bytes.Buffer
		buf := make([]byte, 4096)
		told := false
		for {
			n, err := r.Read(buf)
			all.Write(buf[:n])
			if m := listening.FindSubmatch(all.Bytes()); m != nil && !told {
				ready <- string(m[1])
				told = true
			}
			if err != nil {
				text <- all.String()
				return
			}
		}
	}()
	s := started{stop: func() result {
		cancel()
		return result{<-code, out.String(), <-text}
	}}
	select {
	case s.url = <-ready:
	case all := <-text:
		cancel()
		t.Fatalf("writ up ended: exit %d: %s", <-code, all)
	}
	return s
}

// TestUp: the API key of a first start is all of stdout, once; a second start
// prints nothing there. Both end with exit code 0 on a signal.
func TestUp(t *testing.T) {
	data := t.TempDir()
	s := start(t, data)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %s", resp.Status)
	}
	first := s.stop()
	kept, err := os.ReadFile(datadir.KeyFile(data))
	if err != nil {
		t.Fatal(err)
	}
	if first.code != ExitOK || first.out != string(kept) || !regexp.MustCompile(`^writ_[A-Za-z0-9_-]{43}\n$`).MatchString(first.out) {
		t.Errorf("exit %d, stdout %q", first.code, first.out)
	}
	if strings.Contains(first.err, strings.TrimSpace(string(kept))) {
		t.Error("the key stands among the messages, which are kept in logs")
	}
	for _, says := range []string{"shown only this once", "root.pem: take it offline"} {
		if !strings.Contains(first.err, says) {
			t.Errorf("stderr does not say %q: %s", says, first.err)
		}
	}
	second := start(t, data).stop()
	if second.code != ExitOK || second.out != "" || strings.Contains(second.err, "first start") {
		t.Errorf("second start: exit %d, stdout %q, stderr %q", second.code, second.out, second.err)
	}
}

// TestDemoJSON: the answer, the plan, the intents and what was verified, as one
// document.
func TestDemoJSON(t *testing.T) {
	got := writ(t, "demo", "--json")
	if got.code != ExitOK {
		t.Fatalf("exit %d: %s", got.code, got.err)
	}
	var v struct {
		Answer []struct {
			Place     string  `json:"place"`
			Magnitude float64 `json:"magnitude"`
		} `json:"answer"`
		Plan struct {
			Status string `json:"status"`
		} `json:"plan"`
		Intents []struct {
			IntentID string `json:"intent_id"`
			Code     string `json:"code"`
		} `json:"intents"`
		Verified struct {
			OK bool `json:"ok"`
		} `json:"verified"`
	}
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Answer) != 10 || v.Answer[0].Place == "" || v.Plan.Status != "complete" || len(v.Intents) == 0 || v.Intents[0].IntentID == "" || !v.Verified.OK {
		t.Errorf("%s", got.out)
	}
}
