package bus

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPendingApprovalArgs: an approver sees a script line by line and in full.
func TestPendingApprovalArgs(t *testing.T) {
	for in, want := range map[string]string{
		`{"script":"import os\nos.system(\"\u001b[2Jls\")\n\tpass\n","timeout_sec":5}`: "args      script:\n  | import os\n  | os.system(\"<U+001B>[2Jls\")\n  | \tpass\nargs      timeout_sec: 5\n",
		`{"script":"x = 1 #\u202e)txen( \u2066 \u200b\r\u0000"}`:                       "args      script:\n  | x = 1 #<U+202E>)txen( <U+2066> <U+200B><U+000D><U+0000>\n",
		`{"input":{"a":"\u202eb"},"skill":"f\u009be"}`:                                 "args      input: {\"a\":\"\\u202eb\"}\nargs      skill: f<U+009B>e\n",
		"{\"input\":{\"a\":\"\u202eb\"}}":                                              "args      input: {\"a\":\"\\u202eb\"}\n",
		`{"a\u001b":"b"}`:                                                              "args      a<U+001B>: b\n",
		`{}`:                                                                           "args      none\n",
		`[1]`:                                                                          "args      [1]\n",
		`{"note":"one\ntwo\nargs      skill: harmless"}`:                               "args      note:\n  | one\n  | two\n  | args      skill: harmless\n",
		`{"name":"Zoë 东京"}`:                                                            "args      name: Zoë 东京\n",
	} {
		var out strings.Builder
		writeArgs(&out, json.RawMessage(in))
		if out.String() != want {
			t.Errorf("%s:\n%q, want\n%q", in, out.String(), want)
		}
	}
}

// TestPendingApprovalText: the action comes first, whatever the arguments are called; nothing is
// cut, and text written by others adds no line.
func TestPendingApprovalText(t *testing.T) {
	long := strings.Repeat("x", 40<<10) + "END"
	args, err := json.Marshal(map[string]any{"input": map[string]string{"a": long}, "skill": "shop.drop\u2800all\ntype      memory.get"})
	if err != nil {
		t.Fatal(err)
	}
	h := PendingApproval{Type: "skill.call", UserID: "ana\nasked by  ben", Args: args, Rules: []PendingRule{{ID: "r", Reason: "why\nskill     harmless", Count: 1}}}
	text := h.Text()
	if !strings.HasPrefix(text, "type      skill.call\nskill     shop.drop<U+2800>all<U+000A>type") || !strings.Contains(text, long) {
		t.Errorf("%.200s", text)
	}
	if strings.Contains(text, "\nasked by  ben") || strings.Contains(text, "\nskill     harmless") {
		t.Errorf("%d lines: %.500s", strings.Count(text, "\n"), text)
	}
}
