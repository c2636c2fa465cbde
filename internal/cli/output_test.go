package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"aob.dev/writ/bus"
)

// TestProgress: one line for every state that a turn can be in, and for states
// that this version does not know.
func TestProgress(t *testing.T) {
	tests := []struct {
		state, message string
		step           int
		want           string
	}{
		{"accepted", "", 0, "· accepted"},
		{"planning", "", 0, "· planning"},
		{"executing", "2 steps", 0, "· executing: 2 steps"},
		{"replanning", "", 0, "· replanning"},
		{"step_started", "rank the rows", 2, "· step 2 started: rank the rows"},
		{"step_done", "", 2, "· step 2 done"},
		{"step_failed", "", 10, "· step 10 failed"},
		{"step_started", "", 0, "· step_started"},
		{"paused", "later", 0, "· paused: later"},
		{"paused", "", 3, "· step 3 paused"},
		{"working", "Searching…", 3, "· Searching…"},
		{"ok", "", 3, "· step 3 ok"},
		{"", "", 3, "· step 3 "},
		{"", "", 0, "· "},
		{"executing", "a\x1b[2Jb\x07\nc\u009bd", 0, "· executing: a<U+001B>[2Jb<U+0007> c<U+009B>d"},
	}
	for _, tt := range tests {
		if got := progress(bus.StatusData{State: tt.state, Message: tt.message, Step: tt.step}); got != tt.want {
			t.Errorf("%q %q %d: %q, want %q", tt.state, tt.message, tt.step, got, tt.want)
		}
	}
}

// terminalFile is a file that is a terminal.
func terminalFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if !terminal(f) {
		t.Fatal("a pseudo-terminal is no terminal")
	}
	return f
}

func TestColour(t *testing.T) {
	tty := terminalFile(t)
	none := func(string) string { return "" }
	set := func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }
	if got := painter(IO{Env: none}, tty).bold("x"); got != "\x1b[1mx\x1b[0m" {
		t.Errorf("on a terminal: %q", got)
	}
	if got := painter(IO{Env: set}, tty).bold("x"); got != "x" {
		t.Errorf("with NO_COLOR: %q", got)
	}
	if got := painter(IO{Env: none}, new(bytes.Buffer)).red("x"); got != "x" {
		t.Errorf("into a pipe: %q", got)
	}
}

// TestLogger: people get text, everything else gets JSON, and an unknown level
// is info.
func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log := logger(IO{Err: &out}, "nonsense", "auto")
	log.DebugContext(t.Context(), "not shown")
	log.InfoContext(t.Context(), "shown")
	if got := out.String(); strings.Contains(got, "not shown") || !strings.Contains(got, `"msg":"shown"`) || !strings.Contains(got, `"service":"writ"`) {
		t.Errorf("%s", got)
	}
	out.Reset()
	if logger(IO{Err: &out}, "info", "text").InfoContext(t.Context(), "shown"); !strings.Contains(out.String(), "level=INFO msg=shown") {
		t.Errorf("text: %s", out.String())
	}
}

func TestShort(t *testing.T) {
	if got := short("sha256:0123456789abcdef"); got != "sha256:0123456789ab…" {
		t.Errorf("%s", got)
	}
	if got := short("sha256:01"); got != "sha256:01" {
		t.Errorf("%s", got)
	}
}

// TestPrintJSON: what a script or a server said cannot steer the terminal, and
// its brackets grow no more than a line each.
func TestPrintJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":[1,"<b>"]}`:             "{\n  \"a\": [\n    1,\n    \"<b>\"\n  ]\n}\n",
		"[\"\u009b2J\u007f\u202eé\"]": "[\n  \"\\u009b2J\\u007f\\u202eé\"\n]\n",
	} {
		var out bytes.Buffer
		if err := printJSON(&out, json.RawMessage(in)); err != nil || out.String() != want {
			t.Errorf("%q: %q, %v; want %q", in, out.String(), err, want)
		}
	}
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	var out bytes.Buffer
	if err := printJSON(&out, json.RawMessage(deep)); err != nil || out.Len() != len(deep)+1 {
		t.Errorf("%d bytes of %d, %v", out.Len(), len(deep), err)
	}
}

// TestNothingToShow: a command that has nothing to print says so, and prints only data as JSON.
func TestNothingToShow(t *testing.T) {
	for asJSON, want := range map[bool]string{false: "nothing to show\n", true: ""} {
		var out, told strings.Builder
		c := command{std: IO{Out: &out, Err: &told}, asJSON: asJSON}
		if err := c.print(answer{data: []string{}}); err != nil || told.String() != want || (out.String() != "") != asJSON {
			t.Errorf("json %t: %q, %q, %v", asJSON, out.String(), told.String(), err)
		}
	}
}
