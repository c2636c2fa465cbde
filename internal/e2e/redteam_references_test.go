package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/node"
)

const (
	tellsRegion = `'import json; v = json.load(open(input_file))["region"]; print(json.dumps({"region": v, "one": v[:1], "two": v[1:], "note": "` + canary + `"}))'`
	tellsMuch   = `'import json; v = json.load(open(input_file))["region"]; print(json.dumps({"region": v, "more": "x" * 60000}))'`
	tellsTwice  = `'import json; v = json.load(open(input_file))["region"]; print("{\"region\": \"eu\", \"region\": \"" + v + "\"}")'`
)

// references pay to a region that stands in no argument as it was written: one workflow for each.
var references = map[string]struct {
	first, last string
	blind       bool // even a region that is allowed cannot be seen
}{
	"an input of the run": {"", `inputs: {region: "${inputs.region}"}`, false},
	"an output":           {tellsRegion, `inputs: {region: "${nodes.a.outputs.region}"}`, false},
	"two halves":          {tellsRegion, `inputs: {region: "${nodes.a.outputs.one}${nodes.a.outputs.two}"}`, false},
	"an intent":           {tellsRegion, `from: "${nodes.a.intent}"`, false},
	"an intent, retried":  {tellsRegion, `from: "${nodes.a.intent}", retry: {max: 2}`, false},
	"a large intent":      {tellsMuch, `from: "${nodes.a.intent}"`, true},
	"a large output":      {tellsMuch, `inputs: {region: "${nodes.a.outputs.region}"}`, true},
	"an ambiguous intent": {tellsTwice, `from: "${nodes.a.intent}"`, true},
}

func referring(name string) string {
	return "ref_" + strings.NewReplacer(" ", "_", ",", "").Replace(name)
}

func referenceWorkflows() map[string]string {
	out := redWorkflows()
	for name, r := range references {
		text := "workflow_id: " + referring(name) + "\nversion: \"1\"\ndescription: Pays.\ninputs:\n  type: object\n  properties: {region: {type: string}}\nnodes:\n"
		if r.first != "" {
			text += "  - {id: a, type: python, inputs: {region: \"${inputs.region}\"}, fn: " + r.first + "}\n"
		}
		text += "  - {id: b, type: function, fn: " + pay + ", " + r.last + "}\n"
		if r.first != "" {
			text += "edges:\n  - {from: a, to: b}\n"
		}
		out["workflows/"+referring(name)+".yaml"] = text
	}
	return out
}

// TestRedTeamReferences: rules that deny or hold by arguments see them wherever these come from.
func TestRedTeamReferences(t *testing.T) {
	t.Parallel()
	w := newRedWorldOf(t, referenceWorkflows())
	ana, ben := w.addPerson("default", "ana", "user"), w.addApprover("default", "ben")
	ways := map[string]func(region string){}
	blind := map[string]bool{}
	for name, r := range references {
		blind[name] = r.blind
		ways[name] = func(region string) {
			w.rest(ana, w.startRun(ana, referring(name), map[string]any{"region": region}))
		}
	}
	for name, node := range map[string]func(region, artifact string) map[string]any{
		"a patch": func(region, _ string) map[string]any {
			return map[string]any{"inputs": map[string]string{"region": region}}
		},
		"a patch, an artifact": func(_, artifact string) map[string]any { return map[string]any{"from": artifact} },
		"a patch, an output": func(string, string) map[string]any {
			return map[string]any{"inputs": map[string]string{"region": "${nodes.tell.outputs.region}"}}
		},
		"a patch, an intent": func(string, string) map[string]any { return map[string]any{"from": "${nodes.tell.intent}"} },
	} {
		ways[name] = func(region string) {
			var kept struct{ Artifact string }
			w.call(ana, http.MethodPost, "/agent/artifacts", map[string]string{"region": region}, &kept)
			id := w.startRun(ana, "quick", nil)
			more := node(region, kept.Artifact)
			more["id"], more["type"], more["fn"] = "more", "function", pay
			w.knock(ana, http.MethodPost, "/v1/runs/"+id+"/patch", map[string]any{
				"patch_version": "0.1", "justification": "to see more",
				"add_nodes": []any{map[string]any{"id": "tell", "type": "python", "inputs": map[string]string{"region": region}, "fn": strings.Trim(tellsRegion, "'")}, more},
				"add_edges": []any{map[string]any{"from": "one", "to": "tell"}, map[string]any{"from": "tell", "to": "more"}},
			})
			w.rest(ana, id)
		}
	}
	ways["over MCP"] = func(region string) {
		w.tool(ana, toolOf(pay), json.RawMessage(marshalled(map[string]string{"region": region})))
	}
	ways["over MCP, escaped"] = func(region string) {
		w.tool(ana, toolOf(pay), json.RawMessage(strings.Replace(`{"region":"`+region+`"}`, region[:1], "\\u00"+hexOf(region[0]), 1)))
	}
	for name, way := range ways {
		if got := w.calls(pay, func() { way("eu") }); (got == "") != blind[name] {
			t.Errorf("%s: of what is allowed %q is called: the attempts show nothing", name, got)
		}
		attack(
			t,
			attempt{"denied, by " + name, func() string { return w.calls(pay, func() { way("us") }) }},
			attempt{"held, by " + name, func() string { return w.calls(pay, func() { way("high") }) }},
		)
	}
	waiting := slices.DeleteFunc(w.inbox(ben), func(h bus.PendingApproval) bool { return !strings.Contains(string(h.Args), `"from"`) })
	if len(waiting) < 3 {
		t.Fatalf("only %d wait that name what they work on: the attempts show nothing", len(waiting))
	}
	w.shownByReference(ben, waiting)
	// An approval covers the version shown: an edit needs a new one.
	attack(t, attempt{"an edit to what is denied", func() string {
		return w.calls(pay, func() {
			w.knock(ben, http.MethodPost, "/agent/approvals/"+waiting[0].IntentID, map[string]any{"decision": "edit", "args": map[string]any{"skill": pay, "input": map[string]string{"region": "us"}}})
			w.rest(ana, waiting[0].PlanID)
		})
	}})
	last := waiting[len(waiting)-1]
	if got := w.calls(pay, func() { w.decide(ben, last.IntentID, catalog.DecisionApprove, ""); w.toEnd(ana, last.PlanID) }); got == "" {
		t.Error("what is approved is not called: the attempts show nothing")
	}
}

// shownByReference: people see what they approve also where the intent only names it, but for what a rule masks.
func (w *redWorld) shownByReference(ben person, waiting []bus.PendingApproval) {
	w.t.Helper()
	for _, h := range waiting {
		cli, _ := w.typed(ben, nil, "approvals", "show", h.IntentID, "--url", w.url)
		for where, text := range map[string]string{"by HTTP": string(h.Args), "on the command line": string(cli), "in the console": w.at(ben).open("/console/approvals/" + h.IntentID).text} {
			attack(
				w.t,
				attempt{"what waits, unseen " + where, func() string {
					if !strings.Contains(text, "high") {
						return text
					}
					return ""
				}},
				attempt{"what a rule masks, " + where, func() string {
					if strings.Contains(text, canary) {
						return text
					}
					return ""
				}},
			)
		}
	}
}

func hexOf(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

// bulky are answers of a tool that deliver much, in ways that the size of a result does not show.
func bulky() map[string]string {
	const note = `"note":"a"`
	blob := func(size int) string { return strings.Repeat("QUFB", size/4) }
	return map[string]string{
		"small":            `{"content":[{"type":"text","text":"{\"note\":\"small\"}"}],"structuredContent":{"note":"small"}}`,
		"much text":        `{"content":[{"type":"text","text":"` + strings.Repeat("x", 30_000) + `"}]}`,
		"much":             `{"content":[],"structuredContent":{` + note + `,"more":"` + strings.Repeat("x", 30_000) + `"}}`,
		"by reference":     `{"content":[],"structuredContent":{` + note + `,"more":"` + strings.Repeat("x", 90_000) + `"}}`,
		"image":            `{"content":[{"type":"image","mimeType":"image/png","data":"` + blob(40_000) + `"}],"structuredContent":{` + note + `}}`,
		"embedded":         `{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"` + strings.Repeat("x", 30_000) + `"}}]}`,
		"embedded blob":    `{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"application/octet-stream","blob":"` + blob(40_000) + `"}}],"structuredContent":{` + note + `}}`,
		"many small blobs": `{"content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"image","mimeType":"image/png","data":"`+blob(4_000)+`"},`, 20), ",") + `],"structuredContent":{` + note + `}}`,
		"nested":           `{"content":[{"type":"image","mimeType":"image/png","data":"` + blob(40_000) + `"}],"structuredContent":{"a":[[[{` + note + `,"data":"` + blob(40_000) + `"}]]]}}`,
		"a failure":        `{"isError":true,"content":[{"type":"text","text":"` + strings.Repeat("x", 30_000) + `"}],"structuredContent":{` + note + `}}`,
	}
}

// TestRedTeamMaxBytes: what a tenant bounds is what is delivered, in whatever part of an answer it lies.
func TestRedTeamMaxBytes(t *testing.T) {
	t.Parallel()
	answers := bulky()
	url, calls := serveOdd(t, answers)
	s := start(t, setup{Limits: node.Limits{Requests: -1}, Skills: []string{"trust=true name=odd -- " + url}})
	s.holdNothing()
	ana := s.addPerson("default", "ana", "user")
	delivered := func(name string) bool {
		text := s.tool(ana, oddTool(name), json.RawMessage(`{"n":1}`))
		if calls(oddTool(name)) == 0 {
			t.Fatalf("%s was not called: %s", name, text)
		}
		return !strings.Contains(text, string(intents.OversizedOutput))
	}
	for name := range answers {
		if name != "a failure" && !delivered(name) {
			t.Errorf("%s is not delivered without a bound: the attempts show nothing", name)
		}
	}
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "max_bytes", Value: json.RawMessage(`{"*":20000}`)}})
	if !delivered("small") {
		t.Error("what is within the bound is not delivered: the attempts show nothing")
	}
	for name := range answers {
		if name == "small" {
			continue
		}
		attack(t, attempt{"more than the bound: " + name, func() string {
			text := s.tool(ana, oddTool(name), json.RawMessage(`{"n":2}`))
			if len(text) > 20_000 || !strings.Contains(text, string(intents.OversizedOutput)) && !strings.Contains(text, "isError") {
				return text[:min(len(text), 300)]
			}
			return ""
		}})
	}
}
