package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/node"
)

// quick is done at once; ask waits for people.
const (
	quick = `workflow_id: quick
version: "1"
description: Is done at once.
nodes:
  - {id: one, type: python, fn: 'print("1")'}
  - {id: two, type: python, fn: 'print("2")'}
edges:
  - {from: one, to: two}
`
	ask = `workflow_id: ask
version: "1"
description: Waits for people.
nodes:
  - {id: fetch, type: function, fn: lab.fetch, inputs: {}}
  - {id: notify, type: function, fn: lab.notify, inputs: {text: hello}}
edges:
  - {from: fetch, to: notify}
`
)

// entrance is a way to submit an intent: it answers with its code.
type entrance func(who person, c typeCase, args any) intents.Code

// typeCase is a type of the catalog that people and programs use.
type typeCase struct {
	typ  string
	user person
	good func(n int) any // arguments that are accepted, once for each n
	bad  any
	code intents.Code // that refuses bad
	// route of the gateway, whose intents go over NATS.
	route func(args any) (method, path string, body any)
}

// byHTTP gives an intent that the command line has signed.
func (s *system) byHTTP(who person, c typeCase, args any) intents.Code {
	var a intents.Answer
	_, p := s.call(person{}, http.MethodPost, "/v1/intents", json.RawMessage(s.signedBy(who, c.typ, args)), &a)
	if p.Code != "" {
		return p.Code
	}
	return a.Code
}

func (s *system) byCLI(who person, c typeCase, args any) intents.Code {
	out, _ := s.typed(who, s.signedBy(who, c.typ, args), "intent", "submit", "--url", s.url, "--json")
	var a intents.Answer
	if err := json.Unmarshal(out, &a); err != nil {
		s.t.Fatalf("%s: %v: %s", c.typ, err, out)
	}
	return a.Code
}

func (s *system) byNATS(who person, c typeCase, args any) intents.Code {
	method, path, body := c.route(args)
	if _, p := s.call(who, method, path, body, nil); p.Code != "" {
		return p.Code
	}
	return intents.OK
}

// signedBy is an intent as `writ intent new` and `sign` make it.
func (s *system) signedBy(who person, typ string, args any) []byte {
	s.t.Helper()
	text, code := s.typed(who, nil, "intent", "new", typ, "--args", marshalled(args), "--url", s.url)
	if code != cli.ExitOK {
		s.t.Fatalf("intent new %s: %s", typ, text)
	}
	signed, code := s.typed(who, text, "intent", "sign", "--signer", filepath.Join(s.dir, "keys", "gateway.pem"))
	if code != cli.ExitOK {
		s.t.Fatalf("intent sign: %s", signed)
	}
	return signed
}

// typed runs a command as a person.
func (s *system) typed(who person, in []byte, args ...string) ([]byte, int) {
	var out, errs bytes.Buffer
	env := func(name string) string { return map[string]string{"WRIT_API_KEY": who.key}[name] }
	code := cli.Main(s.t.Context(), args, cli.IO{In: bytes.NewReader(in), Out: &out, Err: &errs, Env: env})
	if out.Len() == 0 {
		return errs.Bytes(), code
	}
	return out.Bytes(), code
}

// TestCatalogTypes: each type that people use is accepted by every entrance, and refused
// there with its code.
func TestCatalogTypes(t *testing.T) {
	t.Parallel()
	l := serveLab(t, nil)
	s := start(t, setup{Limits: node.Limits{Requests: -1}, Skills: []string{l.skills}, Agents: registryDir(t, map[string]string{"workflows/quick.yaml": quick, "workflows/ask.yaml": ask})})
	ben, _, _ := s.holds("lab.notify")
	ana := s.addPerson("default", "ana", "user")
	done := s.startRun(ana, "quick", nil)
	s.runUntil(ana, done, "it ends", ended)
	open := s.startRun(ana, "ask", nil)
	s.runUntil(ana, open, "it waits", waits("notify"))
	var kept struct {
		Artifact string `json:"artifact"`
	}
	if status, p := s.call(ana, http.MethodPost, "/agent/artifacts", map[string]int{"a": 1}, &kept); status/100 != 2 {
		t.Fatalf("artifact: %d %+v", status, p)
	}
	nothing := "sha256:" + strings.Repeat("0", 64)
	to := func(path string) func(any) (string, string, any) {
		return func(args any) (string, string, any) { return http.MethodPost, path, args }
	}
	without := func(args any, name string) map[string]any {
		var all map[string]any
		if err := json.Unmarshal([]byte(marshalled(args)), &all); err != nil {
			t.Fatal(err)
		}
		delete(all, name)
		return all
	}
	ways := map[string]entrance{"CLI": s.byCLI, "HTTP": s.byHTTP, "NATS": s.byNATS}
	for _, c := range []typeCase{
		{
			typ: "workflow.start", user: ana, code: intents.MalformedArgs, route: to("/v1/runs"),
			good: func(int) any { return map[string]any{"workflow_id": "quick", "inputs": map[string]any{}} },
			bad:  map[string]any{"workflow_id": "nothing", "inputs": map[string]any{}},
		},
		{
			typ: "run.replay", user: ana, code: intents.MalformedArgs,
			good: func(int) any { return catalog.RunReplay{RunID: done, FromNode: "two", Mode: catalog.ReplayFreeze} },
			bad:  catalog.RunReplay{RunID: done, FromNode: "nothing", Mode: catalog.ReplayFreeze},
			route: func(args any) (string, string, any) {
				return http.MethodPost, "/v1/runs/" + done + "/replay", without(args, "run_id")
			},
		},
		{
			typ: "graph.patch", user: ana, code: intents.MalformedArgs,
			good: func(n int) any { return patchOf(open, "extra"+string(rune('a'+n)), "fetch") },
			bad:  patchOf(open, "more", "nothing"),
			route: func(args any) (string, string, any) {
				patch, _ := args.(map[string]any)
				return http.MethodPost, "/v1/runs/" + open + "/patch", patch["patch"]
			},
		},
		{
			typ: "hitl.approve", user: ben, code: intents.MalformedArgs,
			good: func(int) any {
				id := s.startRun(ana, "ask", nil)
				s.runUntil(ana, id, "it waits", waits("notify"))
				for _, h := range s.inbox(ben) {
					if h.PlanID == id {
						return map[string]any{"intent_id": h.IntentID, "decision": "approve"}
					}
				}
				t.Fatal("nothing is held")
				return nil
			},
			bad: map[string]any{"intent_id": nothing, "decision": "approve"},
			route: func(args any) (string, string, any) {
				a, _ := args.(map[string]any)
				return http.MethodPost, "/agent/approvals/" + a["intent_id"].(string), without(args, "intent_id")
			},
		},
		{
			typ: "artifact.get", user: ana, code: intents.NotFound,
			good: func(int) any { return catalog.ArtifactGet{Artifact: kept.Artifact} },
			bad:  catalog.ArtifactGet{Artifact: "cas://" + nothing},
			route: func(args any) (string, string, any) {
				a, _ := args.(catalog.ArtifactGet)
				return http.MethodGet, "/agent/artifacts/" + strings.TrimPrefix(a.Artifact, "cas://"), nil
			},
		},
		{
			typ: "logs.stream", user: ana, code: intents.NotFound, route: to("/v1/logs"),
			good: func(int) any { return map[string]any{"run_id": done} },
			bad:  map[string]any{"run_id": "plan_nothing"},
		},
		{
			typ: "kb.search", user: ana, code: intents.RBACForbidden, route: to("/agent/kb/search"),
			good: func(n int) any { return map[string]any{"q": "numbers", "k": n + 1} },
			bad:  map[string]any{"q": "numbers", "filters": map[string]any{"tenant": "other"}},
		},
		{
			typ: "cache.invalidate", user: ana, code: intents.MalformedArgs, route: to("/agent/cache/invalidate"),
			good: func(int) any { return map[string]any{"scope": "workflow", "key": done} },
			bad:  map[string]any{"scope": "key", "key": "no key"},
		},
	} {
		n := 0
		for way, give := range ways {
			if got := give(c.user, c, c.bad); got != c.code {
				t.Errorf("%s by %s: wrong arguments: %s, want %s", c.typ, way, got, c.code)
			}
			if got := give(c.user, c, c.good(n)); got != intents.OK {
				t.Errorf("%s by %s: %s", c.typ, way, got)
			}
			n++
		}
	}
	v := s.runUntil(ana, open, "its new nodes run", func(v catalog.PlanView) bool {
		return strings.Count(strings.Join(nodes(v), ","), " done") == 1+len(ways)
	})
	if v.Revision != 1+len(ways) || v.Status != catalog.PlanExecuting {
		t.Errorf("revision %d, %s", v.Revision, v.Status)
	}
}

// patchOf adds a script behind a node of a run.
func patchOf(run, id, behind string) map[string]any {
	return map[string]any{"run_id": run, "patch": map[string]any{
		"patch_version": "0.1", "justification": "to see more",
		"add_nodes": []any{map[string]any{"id": id, "type": "python", "fn": `print("3")`}},
		"add_edges": []any{map[string]any{"from": behind, "to": id}},
	}}
}
