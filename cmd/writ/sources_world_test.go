package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/demo/quakes"
)

func number(args []string) (int, error) {
	if len(args) != 1 {
		return 0, errors.New("one number is wanted")
	}
	return strconv.Atoi(args[0])
}

// fill replaces texts of a file, for what documents leave out: fill FILE OLD NEW….
func fill(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 3, "fill FILE OLD NEW…")
	text := ts.ReadFile(args[0])
	for i := 1; i+1 < len(args); i += 2 {
		if !strings.Contains(text, args[i]) {
			ts.Fatalf("%s does not have %s", args[0], args[i])
		}
		text = strings.ReplaceAll(text, args[i], args[i+1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// submitPrinted wraps a printed {type, args} into an envelope, signs it and submits it, which
// must end with a code: submit FILE CODE [FLAGS of writ intent new].
func submitPrinted(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "submit FILE CODE [FLAGS]")
	script := `writ intent new "$(jq -r .type ` + args[0] + `)" --args "$(jq .args ` + args[0] + `)" --url ` + w.url + ` --data ` + w.data + ` "$@" |
		writ intent sign --signer ` + w.data + `/keys/gateway.pem --url ` + w.url + ` | writ intent submit --json --url ` + w.url
	cmd := exec.Command("bash", append([]string{"-c", script, "submit"}, args[2:]...)...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), environ(ts, w), io.MultiWriter(&out, ts.Stdout()), ts.Stderr()
	if err := cmd.Run(); !strings.Contains(out.String(), `"code": "`+args[1]+`"`) {
		ts.Fatalf("%v, not %s", err, args[1])
	}
}

// eventually runs a command again and again until it prints what a pattern matches: eventually
// REGEXP PROGRAM ARGS….
func eventually(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "eventually REGEXP PROGRAM ARGS…")
	re := must[*regexp.Regexp](ts)(regexp.Compile(args[0]))
	until(ts, func() (bool, string) {
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts, w)
		out, err := cmd.CombinedOutput()
		if re.Match(out) {
			must[int](ts)(ts.Stdout().Write(out))
			return true, ""
		}
		return false, fmt.Sprint(string(out), err)
	})
}

// serveTools serves skills by these names, at $SKILLS: tools NAME[=RESULT|=@FILE]…. Each takes any
// arguments, which calls.jsonl then has, and answers with an object; without RESULT, with
// {"success": true}, and with @FILE once that file is there.
func serveTools(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 1, "tools NAME[=RESULT|=@FILE]…")
	s := server.NewMCPServer("tools", "1", server.WithToolCapabilities(false))
	calls := ts.MkAbs("calls.jsonl")
	var mu sync.Mutex
	for _, a := range args {
		name, result, _ := strings.Cut(a, "=")
		file, waits := strings.CutPrefix(result, "@")
		if waits || result == "" {
			result = `{"success":true}`
		}
		tool := mcp.NewToolWithRawSchema(name, "Does "+name+".", json.RawMessage(`{"type":"object","properties":{}}`))
		tool.RawOutputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
		no, yes := false, true
		tool.Annotations = mcp.ToolAnnotation{DestructiveHint: &no, IdempotentHint: &yes}
		s.AddTool(tool, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for waits && ctx.Err() == nil {
				if _, err := os.Stat(ts.MkAbs(file)); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			line, err := json.Marshal(map[string]any{"name": name, "arguments": req.Params.Arguments})
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			f, err := os.OpenFile(calls, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			_, err = f.Write(append(line, '\n'))
			r := mcp.NewToolResultText(result)
			r.RawStructuredContent = json.RawMessage(result)
			return r, errors.Join(err, f.Close())
		})
	}
	mux := http.NewServeMux()
	mux.Handle(quakes.Path, server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	srv := httptest.NewServer(mux)
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv("SKILL_URL", srv.URL+quakes.Path)
	ts.Setenv("SKILLS", "trust=true -- "+srv.URL+quakes.Path)
}

// endScene ends what a page has begun: no plan is open, the node starts again and has the same
// plans, and its log is sound. The next up begins with nothing.
func endScene(ts *testscript.TestScript, w *world, _ []string) {
	if begun, err := datadir.HasJournal(w.data); err != nil || !begun {
		ts.Check(err)
		return
	}
	if w.up == nil {
		up(ts, w, w.args)
	}
	before := allPlans(ts, w)
	for id, status := range before {
		if status != string(catalog.PlanComplete) && status != string(catalog.PlanFailed) {
			ts.Fatalf("plan %s has not ended: %s", id, status)
		}
	}
	down(ts, w, nil)
	up(ts, w, w.args)
	if after := allPlans(ts, w); fmt.Sprint(after) != fmt.Sprint(before) {
		ts.Fatalf("after a restart the plans are %v, not %v", after, before)
	}
	down(ts, w, nil)
	ts.Check(sound(context.Background(), w.data))
	ts.Check(os.RemoveAll(w.data))
}

// allPlans are the plans of the local user's tenant, with their states.
func allPlans(ts *testscript.TestScript, w *world) map[string]string {
	cmd := exec.Command("writ", "plan", "list", "--json", "--limit", "100", "--url", w.url, "--data", w.data)
	cmd.Env = environ(ts, w)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		ts.Fatalf("writ plan list: %v %s", err, stderr.Bytes())
	}
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)"plan_id": "([^"]+)".*?"status": "([^"]+)"`).FindAllSubmatch(raw, -1) {
		all[string(m[1])] = string(m[2])
	}
	return all
}

// curl is as much of curl as the documents use.
func curl() {
	method, body, url, headers, file := "", "", "", http.Header{}, ""
	for args := os.Args[1:]; len(args) > 0; args = args[1:] {
		switch a := args[0]; {
		case !strings.HasPrefix(a, "-"):
			url = a
		case strings.Trim(a, "-sSNfL") == "":
		case len(args) < 2:
			fail("curl: %s has no value", a)
		default:
			args = args[1:]
			switch a {
			case "-X":
				method = args[0]
			case "-H":
				name, v, _ := strings.Cut(args[0], ":")
				headers.Add(name, strings.TrimSpace(v))
			case "-d", "--data":
				body = args[0]
				if name, ok := strings.CutPrefix(body, "@"); ok {
					raw, err := os.ReadFile(name)
					if err != nil {
						fail("curl: %v", err)
					}
					body = string(raw)
				}
			case "-o":
				file = args[0]
			default:
				fail("curl: this one has no %s", a)
			}
		}
	}
	if method == "" {
		method = map[bool]string{true: http.MethodGet, false: http.MethodPost}[body == ""]
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		fail("curl: %v", err)
	}
	req.Header = headers
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		fail("curl: %v", err)
	}
	defer resp.Body.Close()
	out := io.Writer(os.Stdout)
	if file != "" {
		f, err := os.Create(file)
		if err != nil {
			fail("curl: %v", err)
		}
		defer f.Close()
		out = f
	}
	if _, err := io.Copy(out, resp.Body); err != nil {
		fail("curl: %v", err)
	}
}

// jq is jq for paths: jq [-r] .name.name[0] [FILE].
func jq() {
	args := os.Args[1:]
	plain := len(args) > 0 && args[0] == "-r"
	if plain {
		args = args[1:]
	}
	in := io.Reader(os.Stdin)
	if len(args) == 2 {
		raw, err := os.ReadFile(args[1])
		if err != nil {
			fail("jq: %v", err)
		}
		in = bytes.NewReader(raw)
	} else if len(args) != 1 {
		fail("jq: one path is wanted")
	}
	dec := json.NewDecoder(in)
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		fail("jq: %v", err)
	}
	for _, step := range regexp.MustCompile(`\.(\w+)|\[(\d+)\]`).FindAllStringSubmatch(args[0], -1) {
		switch at := v.(type) {
		case map[string]any:
			v = at[step[1]]
		case []any:
			i, err := strconv.Atoi(step[2])
			if err != nil || i >= len(at) {
				fail("jq: no element %s", step[0])
			}
			v = at[i]
		default:
			fail("jq: %s is of no object", step[0])
		}
	}
	if s, ok := v.(string); ok && plain {
		fmt.Println(s)
		return
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		fail("jq: %v", err)
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(2)
}
