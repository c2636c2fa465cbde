package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// valued is a run of one workflow whose node a is done.
func valued(t *testing.T, inputs, condition string) (*Graph, Values) {
	t.Helper()
	if inputs == "" {
		inputs = "{}"
	}
	text, err := json.Marshal(map[string]any{
		"workflow_id": "w", "version": "1", "description": "d",
		"inputs": json.RawMessage(`{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"integer"},"f":{"type":"number"},"l":{"type":"array"},"o":{"type":"object"}}}`),
		"nodes": []any{
			map[string]any{"id": "a", "type": "function", "fn": "s.t"},
			map[string]any{"id": "a.b-c", "type": "function", "fn": "s.t"},
			map[string]any{"id": "b", "type": "function", "fn": "s.t", "inputs": json.RawMessage(inputs)},
		},
		"edges": []Edge{{"a", "b", condition}, {"a.b-c", "b", ""}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, faults := Parse("w.yaml", text)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	outputs := `{"n":3,"f":1.5,"big":12345678901234567890,"odd":[-9007199254740993,-0.0,1e-400,52.5200065999999991,1e400,{"a":18446744073709551615}],"s":"text","yes":true,"nil":null,"list":[{"x":1},{"x":2}],"deep":{"er":{"x":"y"}},
		"hidden":"[masked]","partly":{"a":1,"b":"[masked]"},"long":"` + strings.Repeat("x", 5000) + `"}`
	return d.Graph, Values{RunID: "plan_1", Inputs: json.RawMessage(`{"s":"in","n":2,"f":2,"l":[1,2,3],"o":{"k":"v"}}`), Nodes: map[string]NodeValue{
		"a":     {Status: Done, Intent: "sha256:aa", Outputs: d.Cut("a", json.RawMessage(outputs), true)},
		"a.b-c": {Status: Done, Intent: "sha256:bb", Outputs: d.Cut("a.b-c", json.RawMessage(`{"x":[0,[7]]}`), true)},
	}}
}

// TestTemplates: a text that is a single template keeps the value's type, others become text,
// and a missing value is an error with its place.
func TestTemplates(t *testing.T) {
	for in, want := range map[string]string{
		`"plain"`:                             `"plain"`,
		`"${run_id}"`:                         `"plan_1"`,
		`"${inputs.n}"`:                       `2`,
		`"<${inputs.n}>"`:                     `"<2>"`,
		`"${inputs.s}/${inputs.n}"`:           `"in/2"`,
		`["${inputs.l}", 1.50, null, false]`:  `[[1,2,3],1.5,null,false]`,
		`"o ${inputs.o}"`:                     `"o {\"k\":\"v\"}"`,
		`"${inputs.o.k}"`:                     `"v"`,
		`"${nodes.a.outputs.list}"`:           `[{"x":1},{"x":2}]`,
		`"${nodes.a.outputs.list[1].x}"`:      `2`,
		`"${nodes[\"a.b-c\"].outputs.x[1]}"`:  `[7]`,
		`"${nodes.a.outputs[\"deep\"].er.x}"`: `"y"`,
		`"${nodes.a.outputs.nil}"`:            `null`,
		`"-${nodes.a.outputs.nil}"`:           `"-null"`,
		`"${nodes.a.outputs.big}"`:            `"12345678901234567890"`,
		`"#${nodes.a.outputs.big}"`:           `"#12345678901234567890"`,
		`"${nodes.a.outputs.odd}"`:            `["-9007199254740993",0,0,52.5200066,"1e400",{"a":"18446744073709551615"}]`,
		`"${nodes.a.outputs.success}"`:        `true`,
		`"${nodes.a.intent}"`:                 `"sha256:aa"`,
		`"$${inputs.n} $ {} $1"`:              `"${inputs.n} $ {} $1"`,
		`{"${inputs.n}":"${inputs.n}"}`:       `{"${inputs.n}":2}`,

		`"${nodes.a.outputs.none}"`:      `! /inputs/v: /nodes/a/outputs/none is not there, or is hidden`,
		`["${nodes.a.outputs.list[2]}"]`: `! /inputs/v/0: /nodes/a/outputs/list/2 is not there, or is hidden`,
		`"${nodes.a.outputs.list.x}"`:    `! /inputs/v: /nodes/a/outputs/list/x is not there, or is hidden`,
		`"a ${nodes.a.outputs.hidden}"`:  `! /inputs/v: /nodes/a/outputs/hidden is not there, or is hidden`,
		`"${nodes.a.outputs.partly}"`:    `! /inputs/v: /nodes/a/outputs/partly is not there, or is hidden`,
		`"${nodes.a.outputs.long}"`:      `! /inputs/v: /nodes/a/outputs/long is not there, or is hidden`,
		`{"a/b":"${inputs.o.none}"}`:     `! /inputs/v/a~1b: /inputs/o/none is not there, or is hidden`,
	} {
		g, v := valued(t, `{"v":`+in+`}`, "")
		_, args, err := g.Intent("b", v)
		got := strings.TrimSuffix(strings.TrimPrefix(string(args), `{"input":{"v":`), `},"skill":"s.t"}`)
		if err != nil {
			got = "! " + err.Error()
		}
		if got != want {
			t.Errorf("%s: got  %s\nwant %s", in, got, want)
		}
		if is := g.Ready("b", v); (is.Next == Stuck) != (err != nil) {
			t.Errorf("%s: comes to %s", in, is.Next)
		}
	}
}

// TestConditions: results of conditions; "!" is an error.
func TestConditions(t *testing.T) {
	for text, want := range map[string]string{
		"true":                                                 "run",
		"${nodes.a.outputs.success}":                           "run",
		"${ nodes.a.outputs.success == false }":                "skip",
		"nodes.a.outputs.n == 3":                               "run",
		"nodes.a.outputs.n > 2.5":                              "run",
		"nodes.a.outputs.f > 1":                                "run",
		"nodes.a.outputs.f + 1.0 == 2.5":                       "run",
		"nodes.a.outputs.big == '12345678901234567890'":        "run",
		"inputs.n * 2 == 4":                                    "run",
		"inputs.f == 2":                                        "run",
		"inputs.s + '!' == 'in!'":                              "run",
		"inputs.s.startsWith('i') && size(inputs.l) == 3":      "run",
		"inputs.s in ['out', 'in']":                            "run",
		"nodes.a.outputs.list.exists(x, x.x == 2)":             "run",
		"nodes.a.outputs.list.all(x, x.x > 1)":                 "skip",
		"nodes.a.outputs.list[1].x == 2":                       "run",
		"nodes.a.outputs.deep.er.x == 'y'":                     "run",
		"nodes.a.outputs['s'] == 'text' ? true : false":        "run",
		"nodes['a.b-c'].outputs.x[0] == 0":                     "run",
		"nodes.a.outputs.nil == null":                          "run",
		"nodes.a.intent == 'sha256:aa' && run_id == 'plan_1'":  "run",
		"nodes.a.outputs.success || nodes.a.outputs.none == 1": "run",
		"nodes.a.outputs.none == 1 || nodes.a.outputs.success": "run",
		"false && nodes.a.outputs.none == 1":                   "skip",

		"nodes.a.outputs.none == 1":            "! /nodes/a/outputs/none: is not there",
		"nodes.a.outputs.none != 1":            "! /nodes/a/outputs/none: is not there",
		"nodes.a.outputs.hidden == '[masked]'": "! /nodes/a/outputs/hidden: is not there",
		"nodes.a.outputs.long == 'x'":          "! /nodes/a/outputs/long: is not there",
		"nodes.a.outputs.deep.none == 1":       "! /nodes/a/outputs/deep/none: is not there",
		"nodes.a.outputs.list[5].x == 1":       "! ",
		"nodes.a.outputs.s > 3":                "! ",
		"nodes.a.outputs.n / 0 == 1":           "! ",
		"nodes.a.outputs.yes + 1 == 2":         "! ",
	} {
		g, v := valued(t, "", text)
		g.Edges = g.Edges[:1]
		g = &Graph{Nodes: g.Nodes, Edges: g.Edges, Inputs: g.Inputs}
		is := g.Ready("b", v)
		got := is.Next
		if is.Fault != nil {
			got = "! " + strings.TrimPrefix(is.Fault.Error(), "/edges/0/condition: of the node b: ")
		}
		if got != want && (want[0] != '!' || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: got  %s\nwant %s", text, got, want)
		}
	}
}

// TestSaw: the digest covers exactly what the condition reads.
func TestSaw(t *testing.T) {
	g, v := valued(t, "", "nodes.a.outputs.n == 3 || nodes.a.outputs.none")
	saw := func() string { return g.Ready("b", v).Edges[0].Saw }
	// SHA-256 of {"/nodes/a/outputs/n":3}.
	if got := saw(); got != "sha256:f7a27f8f2fe65d2c0961b16a690c35e132350b7460c48dad1764c49990bc52ef" {
		t.Errorf("saw %s", got)
	}
	before := saw()
	v.RunID = "plan_2"
	if saw() != before {
		t.Error("it depends on what is not read")
	}
	v.Nodes["a"] = NodeValue{Status: Done, Outputs: json.RawMessage(`{"n":3,"none":false,"success":true}`)}
	if saw() == before {
		t.Error("it does not depend on what is read")
	}
	if got := g.Next(v); got[0].Node != "b" || got[0].Edges[0].Saw != "" {
		t.Errorf("next: %+v", got)
	}
}

// TestJudgedOnce: a run evaluates a condition once, however often its next nodes are requested,
// and again when the condition's inputs have changed.
func TestJudgedOnce(t *testing.T) {
	const text = "nodes.a.outputs.n == 3"
	g, v := valued(t, "", text)
	for _, n := range []string{"a", "a.b-c"} {
		v.Nodes[n] = NodeValue{Status: Done, Outputs: json.RawMessage(`{"n":3,"success":true}`)}
	}
	last := func() *conditionResult {
		t.Helper()
		g.Next(v)
		runs := g.indexed().conditions[text].runs
		return &runs[len(runs)-1]
	}
	before := last()
	if !before.holds {
		t.Fatalf("%+v", before)
	}
	for range 10 {
		if g.Ready("b", v); last() != before {
			t.Fatal("the condition was evaluated again")
		}
	}
	v.Nodes["a"] = NodeValue{Status: Done, Outputs: json.RawMessage(`{"n":4,"success":true}`)}
	if now := last(); now.holds {
		t.Errorf("other values: %+v", now)
	}
	v.Nodes["a"] = NodeValue{Status: Done}
	if now := last(); now.err == nil {
		t.Errorf("no values: %+v", now)
	}
	if n := len(g.indexed().conditions[text].runs); n != 1 {
		t.Errorf("one run is remembered as %d", n)
	}
}

// TestRunsAreJudgedApart: runs of one graph do not cause each other's conditions to be evaluated
// again, and the oldest run is forgotten.
func TestRunsAreJudgedApart(t *testing.T) {
	const text = "nodes.a.outputs.n == 3"
	g, v := valued(t, "", text)
	c := g.indexed().conditions[text]
	ask := func(run int) {
		v.RunID = fmt.Sprintf("plan_%d", run)
		g.Next(v)
	}
	for i := range maxJudged {
		ask(i)
	}
	before := slices.Clone(c.runs)
	for i := range 2 * maxJudged {
		ask(i % 3)
	}
	if !slices.Equal(c.runs, before) {
		t.Error("a run was judged again")
	}
	if ask(maxJudged); len(c.runs) != maxJudged || c.runs[0].run != "plan_1" || c.runs[maxJudged-1].run != "plan_16" {
		t.Errorf("%+v", c.runs)
	}
}

// TestCostsOfGraph: the total cost of the conditions of a graph is bounded, for a definition and
// for a patched run; equal conditions count once.
func TestCostsOfGraph(t *testing.T) {
	loop := func(i int) string {
		return fmt.Sprintf("inputs.l.exists(x, x == %d) && inputs.l.all(x, x > 0 && x < 5)", i)
	}
	parse := func(n int, condition func(int) string) (*Definition, Faults) {
		nodes, edges := []Node{{ID: "a", Type: Function, Fn: "s.t"}}, []Edge{}
		for i := range n {
			id := fmt.Sprintf("n%d", i)
			nodes, edges = append(nodes, Node{ID: id, Type: Function, Fn: "s.t"}), append(edges, Edge{"a", id, condition(i)})
		}
		text, err := json.Marshal(map[string]any{
			"workflow_id": "w", "version": "1", "description": "d", "nodes": nodes, "edges": edges,
			"inputs": json.RawMessage(`{"type":"object","properties":{"l":{"type":"array"}}}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		return Parse("w.yaml", text)
	}
	if _, faults := parse(100, func(int) string { return loop(0) }); len(faults) > 0 {
		t.Errorf("one condition at many edges: %v", faults)
	}
	if _, faults := parse(100, func(i int) string { return fmt.Sprintf("nodes.a.outputs.x == 'text %d'", i) }); len(faults) > 0 {
		t.Errorf("many plain conditions: %v", faults)
	}
	_, faults := parse(100, loop)
	if len(faults) != 1 || !strings.HasPrefix(faults[0].Pointer, "/edges/1") || !strings.Contains(faults[0].Reason, "more than 1000000") || !strings.Contains(faults[0].Reason, "a to n0 (") {
		t.Fatalf("%v", faults)
	}
	most, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(faults[0].Pointer, "/edges/"), "/condition"))
	if err != nil {
		t.Fatal(err)
	}
	d, faults := parse(most, loop)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	ended := Values{RunID: "plan_1", Nodes: map[string]NodeValue{}}
	for _, n := range d.Nodes {
		ended.Nodes[n.ID] = NodeValue{Status: Done}
	}
	p := Patch{PatchVersion: "1", AddNodes: []Node{{ID: "more", Type: Function, Fn: "s.t"}}, AddEdges: []Edge{{"a", "more", loop(most)}}}
	for name, v := range map[string]Values{"nothing has begun": {RunID: "plan_1"}, "all has ended": ended} {
		_, _, err := d.Overlay(p, "", v)
		var f Faults
		if !errors.As(err, &f) || f[0].Pointer != "/add_edges/0/condition" || !strings.Contains(f[0].Reason, "more than 1000000") {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.RemoveEdges = []EdgeName{{"a", "n0"}}
	if _, _, err := d.Overlay(p, "", Values{RunID: "plan_1"}); err != nil {
		t.Errorf("in another one's place: %v", err)
	}
}

// TestCut: an outcome retains what is read, in 4 KiB, and whether the node succeeded.
func TestCut(t *testing.T) {
	g := &Graph{Nodes: []Node{{ID: "a", Outputs: []string{"/a", "/b/c", "/b/d", "/success", "/z"}}}}
	long := strings.Repeat("x", 3000)
	for _, tc := range []struct {
		outputs string
		done    bool
		want    string
	}{
		{`{"a":1,"b":{"c":2,"d":3,"e":4},"f":5}`, true, `{"a":1,"b":{"c":2,"d":3},"success":true}`},
		{`{"a":1,"success":false}`, true, `{"a":1,"success":false}`},
		{`{"a":1,"success":"no"}`, true, `{"a":1,"success":true}`},
		{`{"a":1,"success":true}`, false, `{"success":false}`},
		{`{"a":"[masked]","b":{"c":["[masked]"],"d":1}}`, true, `{"b":{"d":1},"success":true}`},
		{`{"a":"` + long + `","b":{"c":"` + long + `"},"z":1}`, true, `{"a":"` + long + `","success":true,"z":1}`},
		{`[1]`, true, `{"success":true}`},
		{``, true, `{"success":true}`},
	} {
		if got := string(g.Cut("a", json.RawMessage(tc.outputs), tc.done)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.outputs, got, tc.want)
		}
	}
}

// TestIntents: each type of node is one intent.
func TestIntents(t *testing.T) {
	d, faults := Parse("w.yaml", []byte(`{"workflow_id":"w","version":"1","description":"d","nodes":[
		{"id":"f","type":"function","fn":"s.t","from":"cas://sha256:`+strings.Repeat("0", 64)+`"},
		{"id":"p","type":"python","fn":"print('${x}')","inputs":{"r":"${run_id}"},"timeout_sec":600},
		{"id":"q","type":"python","fn":"1","from":{"a":"${nodes.f.intent}","b":"file_1"}},
		{"id":"g","type":"agent","fn":"general","inputs":{"task":"Run ${run_id}"}},
		{"id":"s","type":"function","fn":"tool"}],"edges":[{"from":"f","to":"q"}]}`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	v := Values{RunID: "r", Nodes: map[string]NodeValue{"f": {Status: Done, Intent: "sha256:" + strings.Repeat("1", 64)}}}
	for id, want := range map[string]string{
		"f": `skill.call {"from":"cas://sha256:` + strings.Repeat("0", 64) + `","skill":"s.t"}`,
		"p": `exec_python {"input":{"r":"r"},"script":"print('${x}')","timeout_sec":30}`,
		"q": `exec_python {"inputs":{"a":"sha256:` + strings.Repeat("1", 64) + `","b":"file_1"},"script":"1"}`,
		"g": ` {"task":"Run r"}`,
		"s": `skill.call {"skill":"tool"}`,
	} {
		if typ, args, err := d.Intent(id, v); err != nil || typ+" "+string(args) != want {
			t.Errorf("%s: %s %s %v", id, typ, args, err)
		}
	}
	if _, _, err := d.Intent("x", v); !errors.As(err, new(*Fault)) {
		t.Errorf("of no node: %v", err)
	}
}

// TestCheckInputs: a run gets only the inputs that the schema allows, and none without a schema.
func TestCheckInputs(t *testing.T) {
	g, _ := valued(t, "", "")
	none := &Graph{}
	for _, tc := range []struct {
		g      *Graph
		inputs string
		ok     bool
	}{{g, `{"n":1}`, true}, {g, `{"n":"1"}`, false}, {g, `[]`, false}, {g, ``, true}, {none, ``, true}, {none, `{}`, true}, {none, `{"n":1}`, false}, {none, `1`, false}} {
		in := json.RawMessage(tc.inputs)
		if tc.inputs == "" {
			in = nil
		}
		if wrong := tc.g.CheckInputs(in); (len(wrong) == 0) != tc.ok {
			t.Errorf("%s: %v", tc.inputs, wrong)
		}
	}
}

// FuzzParse: no file makes Parse panic, and a valid definition can be run and recorded.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("../agents/testdata/refused/flow-*.txtar")
	if err != nil || len(names) < 50 {
		f.Fatal(len(names), err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		_, file, _ := strings.Cut(string(text), "--\n")
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, faults := Parse("w.yaml", text)
		if len(faults) > 0 {
			if faults.Error() == "" {
				t.Error("a fault says nothing")
			}
			return
		}
		v := Values{RunID: "r", Inputs: json.RawMessage(`{}`), Nodes: map[string]NodeValue{}}
		for range len(d.Nodes) + 1 {
			for _, n := range d.Next(v) {
				if n.Next == Run || n.Next == Skip {
					v.Nodes[n.Node] = NodeValue{Status: Done, Outputs: d.Cut(n.Node, json.RawMessage(`{"x":[{"x":1}]}`), true)}
				}
			}
		}
		recorded, err := json.Marshal(d.Graph)
		if err != nil || json.Unmarshal(recorded, new(Graph)) != nil {
			t.Errorf("no record: %v", err)
		}
	})
}

// FuzzExpand: a text that passes the check expands to JSON or to a fault, for any values.
func FuzzExpand(f *testing.F) {
	for _, text := range []string{"${run_id}", "a ${inputs.x} $${ ${nodes.a.outputs.b[0].c}", `${nodes["a b"].intent}`, "${", "$${", "${inputs[\"]\"]}", "${inputs.x[99999999999999999999]}"} {
		f.Add(text, []byte(`{"x":[{"b":null}],"b":"[masked]"}`))
	}
	f.Fuzz(func(t *testing.T, text string, values []byte) {
		v := Values{RunID: "r", Inputs: values, Nodes: map[string]NodeValue{"a": {Status: Done, Intent: "o", Outputs: values}}}
		out, fault := expand(text, "", read(v))
		list, wrong := parts(text)
		if wrong != "" && fault == nil {
			t.Errorf("%q: expands although it %s", text, wrong)
		}
		for _, p := range list {
			if p.path != nil && !strings.HasPrefix(p.path.pointer(), "/") {
				t.Errorf("%q: %q", text, p.path.pointer())
			}
		}
		if fault == nil {
			if _, err := json.Marshal(out); err != nil {
				t.Error(err)
			}
		}
	})
}
