//go:build integration

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/node"
)

// referenceServer is a reference server, asked directly and through writ: each with a place of its own,
// whose paths have the same length.
type referenceServer struct {
	name    string
	command []string
	env     []string // its value is a path in the place
	files   []string // beside its place
	uses    []theirCall
	left    []string // tools whose answers have times, files or links, or that ask the client
}

type theirCall struct {
	tool string
	args string // PLACE stands for the path of the place
}

// committed has all dates and people of commits the same.
var committed = []string{
	"GIT_AUTHOR_NAME=ana", "GIT_AUTHOR_EMAIL=ana@example", "GIT_AUTHOR_DATE=2026-11-01T10:00:00Z", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_COMMITTER_NAME=ana", "GIT_COMMITTER_EMAIL=ana@example", "GIT_COMMITTER_DATE=2026-11-01T10:00:00Z",
}

// repository makes one with a commit and a change.
func repository(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "begun"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), committed...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// referenceServers and calls of all their tools, one after another.
func referenceServers(t *testing.T) []referenceServer {
	t.Helper()
	bin := func(name string) string { return filepath.Join(modules(t), ".bin", name) }
	interpreter := python(t, "WRIT_PYTHON_LANGCHAIN")
	base, err := filepath.EvalSymlinks(interpreter)
	if err != nil {
		t.Fatal(err)
	}
	venv := filepath.Dir(filepath.Dir(interpreter))
	pythons := []string{venv, filepath.Dir(filepath.Dir(base))}
	if strings.HasPrefix(base, "/usr/") {
		pythons = pythons[:1]
	}
	server := func(name string) string { return filepath.Join(venv, "bin", "mcp-server-"+name) }
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" || r.URL.Path == "/none" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "zwölf <&> signed") // fails only with the connection
	}))
	t.Cleanup(page.Close)
	nodes := []string{modules(t)}
	return []referenceServer{
		{"git", []string{server("git"), "--repository", "PLACE"}, committed, pythons, []theirCall{
			{"git_status", `{"repo_path":"PLACE"}`},
			{"git_add", `{"repo_path":"PLACE","files":["a.txt"]}`},
			{"git_diff_staged", `{"repo_path":"PLACE"}`},
			{"git_reset", `{"repo_path":"PLACE"}`},
			{"git_add", `{"repo_path":"PLACE","files":["a.txt"]}`},
			{"git_commit", `{"repo_path":"PLACE","message":"zwölf"}`},
			{"git_diff_unstaged", `{"repo_path":"PLACE","context_lines":1}`},
			{"git_log", `{"repo_path":"PLACE","max_count":5}`},
			{"git_show", `{"repo_path":"PLACE","revision":"HEAD"}`},
			{"git_create_branch", `{"repo_path":"PLACE","branch_name":"side"}`},
			{"git_checkout", `{"repo_path":"PLACE","branch_name":"side"}`},
			{"git_diff", `{"repo_path":"PLACE","target":"main"}`},
			{"git_branch", `{"repo_path":"PLACE","branch_type":"local"}`},
			{"git_checkout", `{"repo_path":"PLACE","branch_name":"none"}`},
			{"git_status", `{"repo_path":"/etc"}`},
		}, nil},
		{"time", []string{server("time"), "--local-timezone", "Europe/Oslo"}, nil, pythons, []theirCall{
			{"get_current_time", `{"timezone":"Asia/Tokyo"}`},
			{"convert_time", `{"source_timezone":"Europe/Oslo","time":"16:30","target_timezone":"Asia/Tokyo"}`},
			{"convert_time", `{"source_timezone":"Europe/Nowhere","time":"16:30","target_timezone":"Asia/Tokyo"}`},
		}, nil},
		{"sqlite", []string{server("sqlite"), "--db-path", "PLACE/a.db"}, nil, pythons, []theirCall{
			{"create_table", `{"query":"CREATE TABLE t (n INTEGER, name TEXT)"}`},
			{"write_query", `{"query":"INSERT INTO t VALUES (9007199254740993, 'zwölf'), (2, NULL)"}`},
			{"read_query", `{"query":"SELECT * FROM t"}`},
			{"list_tables", `{}`},
			{"describe_table", `{"table_name":"t"}`},
			{"append_insight", `{"insight":"two rows"}`},
			{"read_query", `{"query":"SELECT * FROM none"}`},
		}, nil},
		{"fetch", []string{server("fetch")}, nil, pythons, []theirCall{
			{"fetch", `{"url":"` + page.URL + `/page"}`},
			{"fetch", `{"url":"` + page.URL + `/page","max_length":5,"raw":true}`},
			{"fetch", `{"url":"` + page.URL + `/none"}`},
		}, nil},
		{"every", []string{bin("mcp-server-everything"), "stdio"}, nil, nodes, []theirCall{
			{"echo", `{"message":"zwölf <&> \u2028"}`},
			{"get-sum", `{"a":19,"b":23}`},
			{"get-structured-content", `{"location":"Chicago"}`},
			{"get-annotated-message", `{"messageType":"error","includeImage":false}`},
			{"get-annotated-message", `{"messageType":"success","includeImage":true}`},
			{"get-tiny-image", `{}`},
			{"get-resource-links", `{"count":3}`},
			{"get-resource-reference", `{"resourceType":"Blob","resourceId":1}`},
			{"trigger-long-running-operation", `{"duration":0.01,"steps":1}`},
			{"get-sum", `{"a":"19"}`},
		}, []string{"get-env", "gzip-file-as-resource", "simulate-research-query", "toggle-simulated-logging", "toggle-subscriber-updates"}},
		{"memory", []string{bin("mcp-server-memory")}, []string{"MEMORY_FILE_PATH=PLACE/graph.jsonl"}, nodes, []theirCall{
			{"create_entities", `{"entities":[{"name":"writ","entityType":"intent","observations":["stamped"]},{"name":"box","entityType":"thing","observations":[]}]}`},
			{"create_relations", `{"relations":[{"from":"writ","to":"box","relationType":"opens"}]}`},
			{"add_observations", `{"observations":[{"entityName":"writ","contents":["signed","stamped"]}]}`},
			{"add_observations", `{"observations":[{"entityName":"nobody","contents":["x"]}]}`},
			{"read_graph", `{}`},
			{"search_nodes", `{"query":"signed"}`},
			{"open_nodes", `{"names":["nobody"]}`},
			{"delete_observations", `{"deletions":[{"entityName":"writ","observations":["stamped"]}]}`},
			{"delete_relations", `{"relations":[{"from":"writ","to":"box","relationType":"opens"}]}`},
			{"delete_entities", `{"entityNames":["box"]}`},
			{"read_graph", `{}`},
		}, nil},
		{"files", []string{bin("mcp-server-filesystem"), "PLACE"}, nil, nodes, []theirCall{
			{"write_file", `{"path":"PLACE/a.txt","content":"one\ntwo\n"}`},
			{"edit_file", `{"path":"PLACE/a.txt","edits":[{"oldText":"two","newText":"three"}]}`},
			{"read_text_file", `{"path":"PLACE/a.txt"}`},
			{"read_file", `{"path":"PLACE/a.txt","head":1}`},
			{"create_directory", `{"path":"PLACE/in"}`},
			{"write_file", `{"path":"PLACE/in/b.txt","content":"b"}`},
			{"read_multiple_files", `{"paths":["PLACE/a.txt","PLACE/in/b.txt","PLACE/none"]}`},
			{"list_directory", `{"path":"PLACE"}`},
			{"list_directory_with_sizes", `{"path":"PLACE"}`},
			{"directory_tree", `{"path":"PLACE"}`},
			{"search_files", `{"path":"PLACE","pattern":"**/*.txt"}`},
			{"get_file_info", `{"path":"PLACE/a.txt"}`},
			{"list_allowed_directories", `{}`},
			{"read_text_file", `{"path":"PLACE/none.txt"}`},
			{"read_text_file", `{"path":"/etc/passwd"}`},
			{"write_file", `{"path":"PLACE/b.png","content":"no picture"}`},
			{"read_media_file", `{"path":"PLACE/b.png"}`},
			{"move_file", `{"source":"PLACE/a.txt","destination":"PLACE/c.txt"}`}, // held, and then approved
			{"list_directory", `{"path":"PLACE"}`},
		}, nil},
	}
}

// TestIntegrationMCPDifferential: the reference servers show the same tools through writ as to
// a client of their own, and answer all of them in the same way, also once people have approved
// a call. What is denied has no effect.
func TestIntegrationMCPDifferential(t *testing.T) {
	t.Parallel()
	open := t.TempDir()
	place := func(server, side string) string {
		dir := filepath.Join(open, server, side)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	servers := referenceServers(t)
	var sources []string
	for _, x := range servers {
		at := place(x.name, "through")
		text := fmt.Sprintf("name=%s files=%s files=%s:rw", x.name, strings.Join(x.files, " files="), at)
		for _, v := range x.env {
			text += " env=" + strings.ReplaceAll(v, "PLACE", at)
		}
		for _, u := range x.uses {
			if !strings.Contains(text, " effect="+u.tool+":") {
				text += " effect=" + u.tool + ":idempotent"
			}
		}
		sources = append(sources, text+" --")
		for _, word := range x.command {
			sources[len(sources)-1] += fmt.Sprintf(" %q", strings.ReplaceAll(word, "PLACE", at))
		}
	}
	for _, side := range []string{"through", "itself."} {
		repository(t, place("git", side))
	}
	s := start(t, setup{Skills: sources, Limits: node.Limits{MCPTools: 1000}})
	ben, _, _ := s.holds("files.move_file")
	tr, err := transport.NewStreamableHTTP(s.url+"/mcp", transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + s.key}))
	if err != nil {
		t.Fatal(err)
	}
	governed := begun(t, mcpclient.NewClient(tr))
	var shown map[string]string
	s.await("the tools of every server, some of which take their time to start", func() bool {
		shown = toolsOf(t, governed)
		return !slices.ContainsFunc(servers, func(x referenceServer) bool {
			return slices.ContainsFunc(x.uses, func(u theirCall) bool { return shown[u.tool] == "" })
		})
	})
	times := regexp.MustCompile(`(created|modified|accessed): [^\\\n"]*|(T)[\d:]+\+09:00`) // of a file, and now in Tokyo
	for _, x := range servers {
		at := place(x.name, "itself.") // a path as long as the other one
		in := func(text, side string) string {
			return times.ReplaceAllString(strings.ReplaceAll(text, side, "PLACE"), "$1$2")
		}
		env, command := slices.Clone(x.env), slices.Clone(x.command)
		for _, list := range [][]string{env, command} {
			for i := range list {
				list[i] = strings.ReplaceAll(list[i], "PLACE", at)
			}
		}
		c, err := mcpclient.NewStdioMCPClient(command[0], env, command[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		direct := begun(t, c)
		for name, tool := range toolsOf(t, direct) {
			used := slices.ContainsFunc(x.uses, func(u theirCall) bool { return u.tool == name })
			if used == slices.Contains(x.left, name) {
				t.Errorf("%s.%s: it is used: %t", x.name, name, used)
			}
			if there, ok := shown[name]; used && (!ok || there != tool) {
				t.Errorf("%s.%s is shown as %s, want %s", x.name, name, there, tool)
			}
		}
		for _, u := range x.uses {
			call := func(c *mcpclient.Client, side string) *mcp.CallToolResult {
				t.Helper()
				r, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: u.tool, Arguments: json.RawMessage(strings.ReplaceAll(u.args, "PLACE", side))}})
				if err != nil {
					t.Fatalf("%s %s: %v", x.name, u.tool, err)
				}
				return r
			}
			through := place(x.name, "through")
			want, got := call(direct, at), call(governed, through)
			if own, _ := got.StructuredContent.(map[string]any); own["status"] == "held" {
				if u.tool != "move_file" && u.tool != "fetch" { // which reaches the web after private files were read
					t.Errorf("%s is held", u.tool)
				}
				got = s.approved(ben, governed, own["intent_id"].(string))
			}
			if got.IsError != want.IsError {
				t.Errorf("%s %s: error %t, want %t: %+v", x.name, u.tool, got.IsError, want.IsError, got)
			}
			if want.IsError { // in the words of the server
				raw, _ := json.Marshal(got.StructuredContent)
				if words := in(fmt.Sprint(textOf(want)), at); !strings.Contains(in(string(raw), through), strings.Trim(words[:min(len(words), 40)], `"`)) && !strings.Contains(string(raw), "MALFORMED_ARGS") {
					t.Errorf("%s %s: %s does not say %q", x.name, u.tool, raw, words)
				}
				continue
			}
			form := func(r *mcp.CallToolResult, side string) string {
				v := any(r.Content)
				if want.StructuredContent != nil {
					v = r.StructuredContent
				} else if text, is := mcp.AsTextContent(r.Content[0]); is && len(r.Content) == 1 { // a text of JSON is JSON
					var compact bytes.Buffer
					if json.Compact(&compact, []byte(text.Text)) == nil {
						v = compact.String()
					}
				}
				raw, _ := json.Marshal(v) // of JSON
				return in(strings.ReplaceAll(string(raw), "writ://"+x.name+"/", ""), side)
			}
			if d := cmp.Diff(form(want, at), form(got, through)); d != "" {
				t.Errorf("%s %s (-direct +through writ):\n%s", x.name, u.tool, d)
			}
		}
	}
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "skills_allow", Value: json.RawMessage(`["memory.read_graph"]`)}})
	use := func(name, args string) *mcp.CallToolResult {
		r, err := governed.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	denied := use("delete_entities", `{"entityNames":["writ"]}`)
	if own, _ := denied.StructuredContent.(map[string]any); !denied.IsError || own["code"] != string(intents.PolicyDenied) {
		t.Errorf("it is not denied: %+v", denied)
	}
	if graph, _ := json.Marshal(use("read_graph", `{}`).StructuredContent); !strings.Contains(string(graph), "signed") {
		t.Errorf("what was denied has an effect: %s", graph)
	}
}

// approved is the result of a held call, once it was approved.
func (s *system) approved(by person, c *mcpclient.Client, id string) *mcp.CallToolResult {
	s.t.Helper()
	if out, p := s.decide(by, id, catalog.DecisionApprove, ""); p.Code != "" || out.State == catalog.ApprovalPending {
		s.t.Fatalf("%+v %+v", out, p)
	}
	var r *mcp.CallToolResult
	s.await("the call has ended", func() bool {
		var err error
		if r, err = c.CallTool(s.t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "get_result", Arguments: map[string]any{"intent_id": id}}}); err != nil {
			s.t.Fatal(err)
		}
		own, _ := r.StructuredContent.(map[string]any)
		return own["status"] != "held" && own["status"] != "running"
	})
	return r
}

// toolsOf a server, by name: what is said of them, with the schema of their input.
func toolsOf(t *testing.T, c *mcpclient.Client) map[string]string {
	t.Helper()
	list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, tool := range list.Tools {
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		out[tool.Name] = tool.Description + " " + string(raw)
	}
	return out
}

// begun is a client that has begun its session.
func begun(t *testing.T, c *mcpclient.Client) *mcpclient.Client {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(t.Context(), mcp.InitializeRequest{Params: mcp.InitializeParams{ProtocolVersion: mcp.ProtocolVersion20251125, ClientInfo: mcp.Implementation{Name: "test", Version: "1"}}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// textOf a result: what its texts say, as JSON where they are JSON.
func textOf(r *mcp.CallToolResult) any {
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	text := strings.Join(all, "\n")
	var doc any
	if json.Unmarshal([]byte(text), &doc) == nil {
		return doc
	}
	return text
}
