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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// talkative is a gateway with the answers of a conversation, one for each message, and an
// intent that waits for approval.
type talkative struct {
	answers [][]string // frames
	may     bool       // this person may approve the intent
	after   []string   // frames once it is approved

	messages []string // messages
	keys     []string // for skill servers, of messages
	sessions map[string]bool
	approved []string
	bodies   []string // of what was decided
	resumed  string   // the id after which the plan was watched
}

func (g *talkative) serve(t *testing.T) string {
	t.Helper()
	g.sessions = map[string]bool{}
	events := func(w http.ResponseWriter, frames []string) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Plan-Id", "plan_1")
		_, _ = w.Write([]byte(strings.Join(frames, "")))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /agent/run", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Message string
			Session string `json:"session_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Session == "" {
			t.Errorf("%+v, %v", body, err)
		}
		g.messages, g.keys = append(g.messages, body.Message), append(g.keys, r.Header.Get("X-Skill-Api-Key"))
		g.sessions[body.Session] = true
		if strings.Contains(body.Message, "refuse") {
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"code":"RATE_LIMITED","detail":"slowly","status":429}`)
			return
		}
		events(w, g.answers[len(g.messages)-1])
	})
	mux.HandleFunc("GET /agent/approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"intent_id":%q,"type":"skill.call","args":{},"rules":[],"may_decide":%t}`, r.PathValue("id"), g.may)
	})
	mux.HandleFunc("POST /agent/approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		g.approved = append(g.approved, r.PathValue("id"))
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		g.bodies = append(g.bodies, string(body))
		fmt.Fprint(w, `{"intent_id":"sha256:1","state":"released","approved":["ana"]}`)
	})
	mux.HandleFunc("GET /agent/plans/plan_1/events", func(w http.ResponseWriter, r *http.Request) {
		g.resumed = r.Header.Get("Last-Event-ID")
		events(w, g.after)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func token(text string) string { return frame("token", `{"text":`+text+`}`) }

// chat has a conversation of these lines.
func chat(t *testing.T, g *talkative, lines string, args ...string) result {
	t.Helper()
	return call{args: append([]string{"chat", "--url", g.serve(t), "--key", "k"}, args...), stdin: lines}.run(t.Context())
}

// The text of a turn is shown once, as it comes, and then the data as a table; all messages
// are of one session, and a refused message is no end.
func TestChat(t *testing.T) {
	g := &talkative{answers: [][]string{
		{working, frame("child_content", `{"agent":"billing","text":"All \n paid."}`), token(`"Ten "`), token(`"are\u001b[2J "`), working, working, frame("answer", `{"response":"Ten are\u001b[2J open.","data":[{"id":1,"name":"A\tb"},{"id":2}]}`), done("complete")},
		nil,
		{token(`"No"`), frame("token", `{"reset":true}`), token(`"Yes"`), frame("answer", `{"response":"Yes."}`), done("complete")},
		{refused1, done("failed")},
	}}
	got := chat(t, g, "how many?\n\nrefuse this\nreally?\nwhy?\n")
	want := "Ten are<U+001B>[2J open.\nid  name   \n1   A b    \n2   <nil>  \n" + "No\nYes.\n" + "I could not.\n"
	if d := cmp.Diff(want, got.out); d != "" || got.code != ExitOK {
		t.Errorf("exit %d %s", got.code, d)
	}
	for _, part := range []string{"· step 1 started: count", "· billing: All paid.", "RATE_LIMITED: slowly", "Ctrl-D"} {
		if !strings.Contains(got.err, part) {
			t.Errorf("no %q in %q", part, got.err)
		}
	}
	if amid := "· billing: All paid.\n\n· step 1 started: count\n· step 1 started"; !strings.Contains(got.err, amid) {
		t.Errorf("no line of its own for what comes amid the text: %q", got.err)
	}
	if d := cmp.Diff([]string{"how many?", "refuse this", "really?", "why?"}, g.messages); d != "" || len(g.sessions) != 1 {
		t.Errorf("%s in %v", d, g.sessions)
	}
	if chat(t, g, "", "--session", "s1"); len(g.sessions) != 0 {
		t.Errorf("without a message: %v", g.sessions)
	}
	g.messages = nil
	if chat(t, g, "how many?\n", "--session", "s1"); !g.sessions["s1"] {
		t.Errorf("sessions %v", g.sessions)
	}
}

// TestSkillKey: the caller's own key for skill servers comes from a variable, a file or a command, and is in no error.
func TestSkillKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("of-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{"": "", "env:NOTES_KEY": "of-a-variable", "file:" + file: "of-a-file", "cmd:echo of-a-command": "of-a-command"} {
		g := &talkative{answers: [][]string{nil}}
		c := call{args: []string{"chat", "--url", g.serve(t), "--key", "k", "--skill-key", place}, stdin: "hello\n", env: map[string]string{"NOTES_KEY": "of-a-variable"}}
		if got := c.run(t.Context()); !slices.Equal(g.keys, []string{want}) {
			t.Errorf("%q sends %q: %+v", place, g.keys, got)
		}
	}
	for place, code := range map[string]int{"env:NOT_SET": ExitMalformed, "file:" + file + "s": ExitMalformed, "sk-secret": ExitUsage} {
		for _, command := range []string{"chat", "mcp"} {
			got := call{args: []string{command, "--url", "http://127.0.0.1:1", "--key", "k", "--skill-key", place}, stdin: "hello\n"}.run(t.Context())
			if got.code != code || !strings.Contains(got.err, "--skill-key") || strings.Contains(got.err, "sk-secret") {
				t.Errorf("%s %s: %+v", command, place, got)
			}
		}
	}
}

// TestChatDebug: what is sent to models is shown if it is asked for, as the JSON that it is; a node that does not
// show it is told.
func TestChatDebug(t *testing.T) {
	request := `{"messages":[{"content":"You\u001b[2J \u202eare.","role":"system"}],"tools":[]}`
	g := &talkative{answers: [][]string{
		{frame("request", request), frame("answer", `{"response":"Ten."}`), done("complete")},
		{frame("answer", `{"response":"Ten."}`), done("complete")},
	}}
	const hint = "writ up --debug"
	got := chat(t, g, "how many?\nand now?\n", "--debug")
	if want := `{"messages":[{"content":"You\u001b[2J \u202eare.","role":"system"}],"tools":[]}` + "\n"; !strings.Contains(got.err, want) || strings.Count(got.err, hint) != 1 || got.code != ExitOK {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
	g.messages = nil
	if got := chat(t, g, "how many?\nand now?\n"); strings.Contains(got.err, "messages") || strings.Contains(got.err, hint) {
		t.Errorf("nobody asked: %s", got.err)
	}
}

// TestChatGoesOn: where an agent has closed the session, the next line begins another one.
func TestChatGoesOn(t *testing.T) {
	over := frame("done", `{"plan_id":"plan_1","status":"complete","workflow_complete":true}`)
	g := &talkative{answers: [][]string{{frame("answer", `{"response":"Done."}`), over}, {frame("answer", `{"response":"Hello."}`), done("complete")}}}
	got := chat(t, g, "reset it\nhello\n", "--session", "s1")
	if !g.sessions["s1"] || len(g.sessions) != 2 || !strings.Contains(got.err, "the agent is done, and its session closed") {
		t.Errorf("sessions %v: %s", g.sessions, got.err)
	}
}

// Who may approve an intent is asked on the spot, and the turn goes on after the frame that
// said so; others see how to follow the plan.
func TestChatApproves(t *testing.T) {
	held := "id: 7\n" + waits
	for _, c := range []struct {
		may      bool
		answer   string
		approved []string
		out      string
	}{
		{true, "y\n", []string{"sha256:1"}, "Done.\n"},
		{true, "no\n", nil, ""},
		{true, "", nil, ""},
		{false, "y\n", nil, "Again.\n"},
	} {
		g := &talkative{
			may: c.may, answers: [][]string{{working, held}, {frame("answer", `{"response":"Again."}`), done("complete")}},
			after: []string{token(`"Do"`), frame("answer", `{"response":"Done."}`), done("complete")},
		}
		got := chat(t, g, "close it\n"+c.answer)
		if d := cmp.Diff(c.approved, g.approved); d != "" || got.out != c.out || got.code != ExitOK || !strings.Contains(got.err, "writ plan watch plan_1") {
			t.Errorf("may %t, %q: exit %d, %q, %q %s", c.may, c.answer, got.code, got.out, got.err, d)
		}
		if len(c.approved) > 0 && g.resumed != "7" {
			t.Errorf("watched after %q", g.resumed)
		}
	}
}

// Leaving with Ctrl-C and a broken connection print how to return.
func TestChatLeft(t *testing.T) {
	g := &talkative{may: true, answers: [][]string{{waits}}, after: []string{working}}
	if got := chat(t, g, "close it\ny\n"); got.code != ExitNo || !strings.Contains(got.err, "plan plan_1 is still running") {
		t.Errorf("cut after the approval: exit %d, %q", got.code, got.err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Plan-Id", "plan_1")
		_, _ = w.Write([]byte(working))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	ctx, leave := context.WithCancel(t.Context())
	seen := &leaver{leave: func() {}}
	std := IO{In: strings.NewReader("hello\n"), Out: io.Discard, Err: writerFunc(func(b []byte) (int, error) {
		if strings.Contains(string(b), "step 1") {
			leave()
		}
		return seen.Write(b)
	}), Env: func(string) string { return "" }}
	code := Main(ctx, []string{"chat", "--url", s.URL, "--key", "k"}, std)
	if code != ExitNo || !strings.Contains(seen.String(), "plan plan_1 is still running: follow it with `writ plan watch plan_1`") {
		t.Errorf("exit %d, %q", code, seen)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
