package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/datadir"
)

// frame is one event of a stream.
func frame(kind, data string) string {
	return fmt.Sprintf("event: %s\ndata: {\"kind\":%q,\"data\":%s}\n\n", kind, kind, data)
}

// gateway answers a question with frames; key is what it was asked with.
func gateway(t *testing.T, frames ...string) (url string, key *string) {
	t.Helper()
	key = new(string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*key = r.Header.Get("X-Api-Key")
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Plan-Id", "plan_1")
		_, _ = w.Write([]byte(strings.Join(frames, "")))
	}))
	t.Cleanup(s.Close)
	return s.URL, key
}

var (
	working  = frame("status", `{"state":"step_started","step":1,"message":"count"}`)
	news     = frame("status", `{"state":"paused","step":2}`) + frame("weather", `{}`)
	answered = frame("answer", `{"response":"**Ten**\u001b[2J","data":[{"n":10}]}`)
	refused1 = frame("error", `{"reason":"I could not.","failure":{"reason":"infeasible","completed_steps":[]}}`)
	waits    = frame("held", `{"plan_id":"plan_1","approval":{"intent_id":"sha256:1"}}`)
)

func done(status string) string { return frame("done", `{"plan_id":"plan_1","status":"`+status+`"}`) }

func TestRun(t *testing.T) {
	tests := []struct {
		name     string
		frames   []string
		code     int
		out, err string
		members  []string
	}{
		{
			"complete",
			[]string{working, news, answered, done("complete")},
			ExitOK, "**Ten**<U+001B>[2J\n", "· step 1 started: count\n· step 2 paused\n",
			[]string{"data", "plan_id", "response", "status"},
		},
		{"needs_input", []string{frame("answer", `{"response":"Which ten?"}`), done("needs_input")}, ExitOK, "Which ten?\n", "", []string{"plan_id", "response", "status"}},
		{"failed", []string{refused1, done("failed")}, ExitNo, "I could not.\n", "", []string{"failure", "plan_id", "response", "status"}},
		{
			"held",
			[]string{working, waits},
			ExitOK, "", "· step 1 started: count\nplan plan_1 waits for people to approve one of its intents\nshow the intent: writ approvals show sha256:1\nfollow the plan: writ plan watch plan_1\n",
			[]string{"data", "plan_id", "status"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := gateway(t, tt.frames...)
			got := writ(t, "run", "how many?", "--url", url, "--key", "k")
			if d := cmp.Diff(result{tt.code, tt.out, tt.err}, got, cmp.AllowUnexported(result{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			got = writ(t, "run", "how many?", "--url", url, "--key", "k", "--json")
			if got.code != tt.code || got.err != "" {
				t.Errorf("--json: exit %d, stderr %q", got.code, got.err)
			}
			if d := cmp.Diff(tt.members, members(t, got.out)); d != "" {
				t.Errorf("--json: members (-want +got):\n%s", d)
			}
			var v struct {
				PlanID string `json:"plan_id"`
				Status string `json:"status"`
			}
			if err := json.Unmarshal([]byte(got.out), &v); err != nil || v.PlanID != "plan_1" || v.Status != tt.name {
				t.Errorf("--json: %+v, error %v", v, err)
			}
		})
	}
}

// TestRunCut: the plan that goes on is named, and nothing stands on stdout.
func TestRunCut(t *testing.T) {
	url, _ := gateway(t, working)
	got := writ(t, "run", "how many?", "--url", url, "--key", "k", "--json")
	if got.code != ExitNo || got.out != "" || !strings.Contains(got.err, "writ plan watch plan_1") {
		t.Errorf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
	}
}

// TestRunLeft: leaving with Ctrl-C prints how to return.
func TestRunLeft(t *testing.T) {
	const plan = "plan_000mx0zw1j647tf2kobh4agiwf"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Plan-Id", plan)
		_, _ = w.Write([]byte(working))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	for _, args := range [][]string{{"run", "how many?"}, {"plan", "watch", plan}} {
		ctx, leave := context.WithCancel(t.Context())
		seen := &leaver{leave: leave}
		std := IO{In: strings.NewReader(""), Out: io.Discard, Err: seen, Env: func(string) string { return "" }}
		code := Main(ctx, append(args, "--url", s.URL, "--key", "k"), std)
		if code != ExitNo || !strings.Contains(seen.String(), "plan "+plan+" is still running: follow it with `writ plan watch "+plan+"`") {
			t.Errorf("%v: exit %d, stderr %q", args, code, seen)
		}
	}
}

// leaver is somebody who leaves at the first line.
type leaver struct {
	strings.Builder
	leave func()
}

func (l *leaver) Write(b []byte) (int, error) {
	l.leave()
	return l.Builder.Write(b)
}

// TestPlanWatch shows what run would have shown, with its exit codes.
func TestPlanWatch(t *testing.T) {
	url, _ := gateway(t, working, news, answered, done("complete"))
	got := writ(t, "plan", "watch", "plan_000mx0zw1j647tf2kobh4agiwf", "--url", url, "--key", "k")
	if d := cmp.Diff(result{ExitOK, "**Ten**<U+001B>[2J\n", "· step 1 started: count\n· step 2 paused\n"}, got, cmp.AllowUnexported(result{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	url, _ = gateway(t, refused1, done("failed"))
	if got := writ(t, "plan", "watch", "plan_000mx0zw1j647tf2kobh4agiwf", "--url", url, "--key", "k"); got.code != ExitNo || got.out != "I could not.\n" {
		t.Errorf("%+v", got)
	}
}

func TestRunUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	got := writ(t, "run", "how many?", "--url", s.URL, "--key", "k")
	if got.code != ExitNo || got.out != "" || !strings.Contains(got.err, "no answer from "+s.URL) {
		t.Errorf("exit %d, stderr %q", got.code, got.err)
	}
}

// TestRunKey: the flag over the variable over the data directory.
func TestRunKey(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(datadir.KeyFile(data)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(datadir.KeyFile(data), []byte("from the directory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"WRIT_API_KEY": "from the environment"}
	url, key := gateway(t, answered, done("complete"))
	for _, tt := range []struct {
		want string
		env  map[string]string
		args []string
	}{
		{"from the flag", env, []string{"--key", "from the flag", "--data", data}},
		{"from the environment", env, []string{"--data", data}},
		{"from the directory", nil, []string{"--data", data}},
	} {
		got := call{args: append([]string{"run", "how many?", "--url", url}, tt.args...), env: tt.env}.run(t.Context())
		if got.code != ExitOK || *key != tt.want {
			t.Errorf("%s: exit %d, key %q, stderr %q", tt.want, got.code, *key, got.err)
		}
	}
	got := writ(t, "run", "how many?", "--url", url, "--data", t.TempDir())
	if got.code != ExitNo || !strings.Contains(got.err, "WRIT_API_KEY") || !strings.Contains(got.err, "--data") {
		t.Errorf("no key: exit %d, stderr %q, which must say what to do", got.code, got.err)
	}
}
