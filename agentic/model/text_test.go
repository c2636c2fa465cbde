package model

import (
	"strings"
	"testing"
)

// TestThinking cuts each text at every two places: the output does not depend on it.
func TestThinking(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"plain":                                 "plain",
		"\n indented":                           "indented",
		"<think>a</think>b":                     "b",
		" <think>\na</think>\n b ":              "b ",
		"<think>a < b </thin </think>c</think>": "c</think>",
		"<think>a</think><think>b</think>c":     "c",
		"<think></think>":                       "",
		"<think>never ends":                     "",
		"<think>ends nearly</think":             "",
		"<thin":                                 "<thin",
		"<thinker> sits":                        "<thinker> sits",
		"so <think>a</think>":                   "so <think>a</think>",
		"<think>é</think>é":                     "é",
	} {
		for i := range len(in) + 1 {
			for j := i; j <= len(in); j++ {
				var filter thinking
				got := filter.next(in[:i]) + filter.next(in[i:j]) + filter.next(in[j:]) + filter.end()
				if got != want {
					t.Fatalf("%q | %q | %q: got %q, want %q", in[:i], in[i:j], in[j:], got, want)
				}
			}
		}
	}
}

// TestThinkingComesAtOnce: text is withheld only as long as it may be a tag.
func TestThinkingComesAtOnce(t *testing.T) {
	var filter thinking
	for _, step := range [][2]string{{"<", ""}, {"b>", "<b>"}, {"<think>", "<think>"}} {
		if got := filter.next(step[0]); got != step[1] {
			t.Errorf("%q: got %q, want %q", step[0], got, step[1])
		}
	}
	filter = thinking{}
	filter.next("<think>")
	filter.next(strings.Repeat("a<", 1<<16))
	if len(filter.held) >= len(filter.ends) {
		t.Errorf("%d bytes of a thought are kept", len(filter.held))
	}
}

func TestUnfence(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`:                        `{"a":1}`,
		"```json\n{\"a\":1}\n```":        `{"a":1}`,
		" ```\n{\"a\":1}```\n":           `{"a":1}`,
		"```JSON {\"a\":\"```\"} ```":    "{\"a\":\"```\"}",
		"```json\n{\"a\":1}":             "```json\n{\"a\":1}",
		"```":                            "```",
		"``````":                         "``````",
		"```python\nprint(1)\n```":       "```python\nprint(1)\n```",
		"{\"a\":\"```json\\n{}\\n```\"}": "{\"a\":\"```json\\n{}\\n```\"}",
		"":                               "",
	} {
		if got := unfence(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
