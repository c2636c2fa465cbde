package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// deciding is a gateway that keeps what people decide: the path, and the body.
func deciding(t *testing.T, intent, result string) (url string, said *[]string) {
	t.Helper()
	said = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(intent))
			return
		}
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		*said = append(*said, r.URL.Path+" "+string(body))
		_, _ = w.Write([]byte(result))
	}))
	t.Cleanup(s.Close)
	return s.URL, said
}

// TestApprovalsDecide: each decision is sent as given, and the next step is printed.
func TestApprovalsDecide(t *testing.T) {
	const whole = "sha256:2eb1cc1ff8a7c0de2eb1cc1ff8a7c0de2eb1cc1ff8a7c0de2eb1cc1ff8a7c0de"
	for _, c := range []struct{ args, stdin, result, printed, out, next string }{
		{"approve " + whole + " --item a --item b", "", `{"state":"released"}`, "/agent/approvals/" + whole + ` {"decision":"approve","items":["a","b"]}`, "released\n", "it is being carried out"},
		{"approve " + whole, "", `{"state":"held","missing":["x"]}`, "/agent/approvals/" + whole + ` {"decision":"approve"}`, "held, approvals still needed from x\n", ""},
		{"edit " + whole, `{"n": 5}`, `{"state":"ended","code":"CHANGED"}`, "/agent/approvals/" + whole + ` {"decision":"edit","args":{"n":5}}`, "ended CHANGED\n", "the next task"},
		{"request-changes " + whole + " --reason no", "", `{"state":"ended","code":"APPROVAL_REJECTED"}`, "/agent/approvals/" + whole + ` {"decision":"request_changes","reason":"no"}`, "ended APPROVAL_REJECTED\n", "the requester reads your reason"},
	} {
		url, said := deciding(t, "{}", c.result)
		got := call{args: append(append([]string{"approvals"}, strings.Fields(c.args)...), "--url", url, "--key", "k"), stdin: c.stdin}.run(t.Context())
		if d := cmp.Diff([]string{c.printed}, *said); d != "" || got.code != ExitOK || got.out != c.out || !strings.HasPrefix(got.err, "intent "+whole+"\n") || !strings.Contains(got.err, c.next) {
			t.Errorf("%s: exit %d, %q, %q %s", c.args, got.code, got.out, got.err, d)
		}
	}
	for _, wrong := range []string{"approve", "approve " + whole + " --run p", "edit " + whole} {
		url, said := deciding(t, "{}", "{}")
		got := call{args: append(append([]string{"approvals"}, strings.Fields(wrong)...), "--url", url, "--key", "k"), stdin: "no json"}.run(t.Context())
		if got.code != ExitUsage && got.code != ExitMalformed || len(*said) > 0 {
			t.Errorf("%s: exit %d, %q %v", wrong, got.code, got.err, *said)
		}
	}
}

// TestQuestionShown: people read what they are asked, item by item; a text adds no line of its own.
func TestQuestionShown(t *testing.T) {
	url, _ := deciding(t, `{"intent_id":"sha256:1","type":"approval.ask","args":{"title":"Which?\nrule x","detail":"One.\nTwo.","items":[{"id":"a","text":"Berlin"}]},"rules":[]}`, "{}")
	got := call{args: []string{"approvals", "show", "sha256:" + strings.Repeat("1", 64), "--url", url, "--key", "k"}}.run(t.Context())
	if want := "question  Which?<U+000A>rule x\n          One.\n          Two.\nitem      a: Berlin\n"; !strings.Contains(got.out, want) {
		t.Errorf("%q", got.out)
	}
}

// TestChatDecides: in a conversation people edit, ask for changes and answer questions in place.
func TestChatDecides(t *testing.T) {
	for answer, want := range map[string]string{
		"e\n{\"n\":5}\n":   `{"decision":"edit","args":{"n":5}}`,
		"c\nanother day\n": `{"decision":"request_changes","reason":"another day"}`,
		"r\nno\n":          `{"decision":"reject","reason":"no"}`,
		"r\n\n":            "",
		"e\nno json\n":     "",
		"yes\n":            `{"decision":"approve"}`,
	} {
		g := &talkative{may: true, answers: [][]string{{waits}}, after: []string{frame("answer", `{"response":"Done."}`), done("complete")}}
		if chat(t, g, "close it\n"+answer); strings.Join(g.bodies, "") != want {
			t.Errorf("%q: %q", answer, g.bodies)
		}
	}
}
