package client

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frameView is a frame in short.
type frameView struct{ ID, Event, Data string }

func read(text string) ([]frameView, error) {
	var out []frameView
	err := frames(strings.NewReader(text), func(f Frame) error {
		out = append(out, frameView{f.ID, f.Event, string(f.Data)})
		return nil
	})
	return out, err
}

func TestFrames(t *testing.T) {
	tests := []struct {
		name, text string
		want       []frameView
	}{
		{"one", "id: 7\nevent: status\ndata: {\"data\":{\"state\":\"planning\"}}\n\n", []frameView{{"7", "status", `{"state":"planning"}`}}},
		{"two", "event: a\ndata: {\"data\":1}\n\nevent: b\ndata: {\"data\":2}\n\n", []frameView{{"", "a", "1"}, {"", "b", "2"}}},
		{"several lines", "event: a\ndata: {\"data\":\ndata: [1,\ndata: 2]}\n\n", []frameView{{"", "a", "[1,\n2]"}}},
		{"no space behind the colon", "event:a\ndata:{\"data\":1}\n\n", []frameView{{"", "a", "1"}}},
		{"carriage returns", "event: a\r\ndata: {\"data\":1}\r\n\r\n", []frameView{{"", "a", "1"}}},
		{"comments", ": nothing new\n\nevent: a\n: or here\ndata: {\"data\":1}\n\n", []frameView{{"", "a", "1"}}},
		{"fields of others", "retry: 5\nevent: a\nfoo: bar\ndata: {\"data\":1}\n\n", []frameView{{"", "a", "1"}}},
		{"an event without data is none", "event: a\n\nevent: b\ndata: {\"data\":1}\n\n", []frameView{{"", "b", "1"}}},
		{"members beside the data", "event: a\ndata: {\"seq\":7,\"kind\":\"a\",\"data\":1}\n\n", []frameView{{"", "a", "1"}}},
		{"cut off", "event: a\ndata: {\"data\":1}\n\nevent: b\ndata: {\"data\":2}\n", []frameView{{"", "a", "1"}}},
		{"nothing", "", nil},
		{"large", "event: a\ndata: {\"data\":\"" + strings.Repeat("x", 1<<20) + "\"}\n\n", []frameView{{"", "a", `"` + strings.Repeat("x", 1<<20) + `"`}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestFramesNotJSON(t *testing.T) {
	for _, text := range []string{"data: 1\ndata: 2\n\n", "data: oops\n\n", "event: a\ndata:\n\n"} {
		if got, err := read(text); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

// TestFramesEnd: an error of the caller ends the reading at once.
func TestFramesEnd(t *testing.T) {
	enough, n := errors.New("enough"), 0
	err := frames(strings.NewReader(strings.Repeat("data: {\"data\":1}\n\n", 3)), func(Frame) error {
		n++
		return enough
	})
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d frames, error %v", n, err)
	}
}
