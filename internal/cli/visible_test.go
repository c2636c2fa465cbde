package cli

import (
	"bytes"
	"encoding/json"
	"testing"
)

// An approver sees a script line by line, and all that is in it.
func TestPrintArgs(t *testing.T) {
	for in, want := range map[string]string{
		`{"script":"import os\nos.system(\"\u001b[2Jls\")\n\tpass\n","timeout_sec":5}`: "args      script:\n  | import os\n  | os.system(\"\\u{001b}[2Jls\")\n  | \tpass\nargs      timeout_sec: 5\n",
		`{"script":"x = 1 #\u202e)txen( \u2066 \u200b\r\u0000"}`:                       "args      script:\n  | x = 1 #\\u{202e})txen( \\u{2066} \\u{200b}\\u{000d}\\u{0000}\n",
		`{"input":{"a":"\u202eb"},"skill":"f\u009be"}`:                                 "args      input: {\"a\":\"\\u202eb\"}\nargs      skill: f\\u{009b}e\n",
		"{\"input\":{\"a\":\"\u202eb\"}}":                                              "args      input: {\"a\":\"\\u{202e}b\"}\n",
		`{"a\u001b":"b"}`:                                                              "args      a\\u{001b}: b\n",
		`{}`:                                                                           "args      none\n",
		`[1]`:                                                                          "args      [1]\n",
		`{"note":"one\ntwo\nargs      skill: harmless"}`:                               "args      note:\n  | one\n  | two\n  | args      skill: harmless\n",
		`{"name":"Zoë 东京"}`:                                                            "args      name: Zoë 东京\n",
	} {
		var out bytes.Buffer
		printArgs(&out, json.RawMessage(in))
		if out.String() != want {
			t.Errorf("%s:\n%q, want\n%q", in, out.String(), want)
		}
	}
}
