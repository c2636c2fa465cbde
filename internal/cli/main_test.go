package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

// call is one run of the command line.
type call struct {
	args  []string
	stdin string
	env   map[string]string
}

// result is what it left behind.
type result struct {
	code     int
	out, err string
}

func (c call) run(ctx context.Context) result {
	var out, stderr bytes.Buffer
	code := Main(ctx, c.args, IO{In: strings.NewReader(c.stdin), Out: &out, Err: &stderr, Env: func(name string) string { return c.env[name] }})
	return result{code, out.String(), stderr.String()}
}

func writ(t *testing.T, args ...string) result {
	t.Helper()
	return call{args: args}.run(t.Context())
}

// file writes a file and gives its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// members are the names of a JSON object's members, sorted.
func members(t *testing.T, doc string) []string {
	t.Helper()
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	return slices.Sorted(maps.Keys(v))
}

func TestUsage(t *testing.T) {
	tests := []struct {
		args string
		says string
	}{
		{"--nonsense", "--nonsense"},
		{"up --nonsense", "--nonsense"},
		{"nonsense", `"nonsense"`},
		{"intent nonsense", `"nonsense"`},
		{"admin sandbox nonsense", `"nonsense"`},
		{"up nonsense", `"nonsense"`},
		{"run", "missing: QUESTION"},
		{"run one two", `"two" is one argument too many`},
		{"intent verify", "missing: --keys"},
		{"intent verify one two --keys k", "one argument too many"},
		{"intent verify --keys", "--keys"},
	}
	for _, tt := range tests {
		got := writ(t, strings.Fields(tt.args)...)
		if got.code != ExitUsage || got.out != "" || !strings.HasPrefix(got.err, "writ: ") || !strings.Contains(got.err, tt.says) || !strings.Contains(got.err, "--help") {
			t.Errorf("writ %s: exit %d, stdout %q, stderr %q", tt.args, got.code, got.out, got.err)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"", "--help", "help", "up --help", "intent", "admin", "admin sandbox"} {
		got := writ(t, strings.Fields(args)...)
		if got.code != ExitOK || !strings.Contains(got.out, "Usage:") || got.err != "" {
			t.Errorf("writ %s: exit %d, stderr %q", args, got.code, got.err)
		}
	}
}

func TestVersion(t *testing.T) {
	if got := writ(t, "--version"); got.code != ExitOK || !strings.HasPrefix(got.out, "writ ") || strings.Count(got.out, "\n") != 1 {
		t.Errorf("exit %d: %q", got.code, got.out)
	}
}

// TestMalformed: input that cannot be read is none of the three other codes.
func TestMalformed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	notKeys := file(t, "keys.json", "[]")
	for _, args := range [][]string{
		{"intent", "verify", missing, "--keys", notKeys},
		{"intent", "verify", "-", "--keys", missing},
		{"intent", "verify", "-", "--keys", notKeys},
		{"intent", "verify", "-", "--keys", file(t, "keys.json", `{"keys":[{"kid":"x"}]}`)},
		{"intent", "submit", missing},
		{"admin", "sandbox", "run", missing},
		{"admin", "sandbox", "run", file(t, "x.py", ""), "--input", missing},
		{"up", "--config", missing},
		{"up", "--config", file(t, "writ.yaml", "data_dir: x\n")},
	} {
		got := writ(t, args...)
		if got.code != ExitMalformed || got.out != "" || !strings.HasPrefix(got.err, "writ: ") {
			t.Errorf("writ %s: exit %d, stdout %q, stderr %q", strings.Join(args, " "), got.code, got.out, got.err)
		}
	}
}

// TestUnknownKey: the key that is at fault is named.
func TestUnknownKey(t *testing.T) {
	got := writ(t, "up", "--config", file(t, "writ.yaml", "data: x\ndata_dir: x\n"))
	if !strings.Contains(got.err, "data_dir") {
		t.Errorf("stderr %q", got.err)
	}
}

func TestSandboxRunJSON(t *testing.T) {
	data := t.TempDir()
	tests := []struct {
		name, script string
		args         []string
		code         int
		outcome      string
		output       string
	}{
		{"a document", "print('{\"n\": 1}')", nil, ExitOK, "ok", `{"n":1}`},
		{"its input", "print(len(open(input_file).read()))", []string{"--input", file(t, "in", "12345")}, ExitOK, "ok", "5"},
		{"no document", "print('just words')", nil, ExitOK, "ok", `"just words\n"`},
		{"an error", "raise ValueError('no')", nil, ExitNo, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := writ(t, append([]string{"admin", "sandbox", "run", file(t, "x.py", tt.script), "--json", "--data", data}, tt.args...)...)
			if got.code != tt.code {
				t.Fatalf("exit %d, stderr %q", got.code, got.err)
			}
			if d := cmp.Diff([]string{"driver", "duration_ms", "error", "outcome", "output"}, members(t, got.out)); d != "" {
				t.Errorf("members (-want +got):\n%s", d)
			}
			var v struct {
				Outcome, Error, Driver string
				Output                 json.RawMessage
			}
			if err := json.Unmarshal([]byte(got.out), &v); err != nil {
				t.Fatal(err)
			}
			if v.Driver == "" || tt.code == ExitOK != (v.Outcome == "ok") {
				t.Errorf("outcome %q by driver %q", v.Outcome, v.Driver)
			}
			if tt.code != ExitOK {
				if !strings.Contains(v.Error, "ValueError: no") || !strings.Contains(got.err, "ValueError: no") {
					t.Errorf("error %q, stderr %q", v.Error, got.err)
				}
				return
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, v.Output); err != nil || compact.String() != tt.output {
				t.Errorf("output %s, error %v", v.Output, err)
			}
		})
	}
}

func TestSandboxRunText(t *testing.T) {
	got := writ(t, "admin", "sandbox", "run", file(t, "x.py", "print('just words')"), "--data", t.TempDir())
	if got.code != ExitOK || got.out != "just words\n" {
		t.Errorf("exit %d: %q, stderr %q", got.code, got.out, got.err)
	}
}
