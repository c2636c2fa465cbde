package model

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

var updateTable = flag.Bool("update", false, "write the table of docs/models.md anew")

// client is the real client before a strict server.
type client struct {
	*OpenAI
	server *strict
	log    bytes.Buffer
	waits  []time.Duration
}

func newClient(t *testing.T, p *provider) *client {
	t.Helper()
	yes := true
	c := &client{server: &strict{t: t, p: p}}
	log := slog.New(slog.NewTextHandler(&c.log, nil))
	o, err := NewOpenAI(OpenAIConfig{Model: "m", Log: log, MaxTokens: 1000, Effort: "low", Parallel: &yes})
	if err != nil {
		t.Fatal(err)
	}
	o.svc = openai.NewChatCompletionService(option.WithMaxRetries(0), option.WithBaseURL("http://provider/v1/"),
		option.WithHTTPClient(&http.Client{Transport: openaiWire{c.server, nil, ""}}))
	o.wait = func(_ context.Context, d time.Duration) error { c.waits = append(c.waits, d); return nil }
	c.OpenAI = o
	return c
}

// complexSchema has what servers differ about.
const complexSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false, "required": ["kind", "where"],
	"anyOf": [{"required": ["kind"]}, {"required": ["where"]}],
	"properties": {
		"kind": {"anyOf": [{"const": "a", "description": "the first"}, {"const": "b"}]},
		"where": {"$ref": "#/$defs/place"},
		"mail": {"type": ["string", "null"], "format": "email", "pattern": "^[^@]+@[^@]+$"},
		"count": {"type": "integer", "enum": [1, 2], "exclusiveMinimum": 0},
		"many": {"type": "array"},
		"odd": {"type": "string", "properties": {}, "required": ["x"]},
		"both": {"allOf": [{"$ref": "#/$defs/place"}, {"properties": {"floor": {"type": "integer"}}, "required": ["floor"]}]}
	},
	"$defs": {"place": {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}, "within": {"$ref": "#/$defs/place"}}, "required": ["name"], "additionalProperties": false}}
}`

func lookTools() []Tool {
	return []Tool{
		{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"o":{"type":"object"}}}`), Pure: true},
		{Name: "nothing", Description: "Takes nothing.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
}

// providerTasks are what agents do with a model.
var providerTasks = []struct {
	name string
	do   func(t *testing.T, c *client)
}{
	{"text", func(t *testing.T, c *client) {
		t.Helper()
		var h collector
		r, err := c.ask(t, Request{}, h.on, answer{text: "forty two it is"})
		if err != nil || r.Text != "forty two it is" || h.text() != r.Text || len(h.pieces) < 2 {
			t.Errorf("%+v, %v, heard %q", r, err, h.pieces)
		}
	}},
	{"call", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{Tools: lookTools()}, nil, answer{calls: []string{`{"n":1}`}})
		wantCalls(t, r, err, `{"n":1}`)
	}},
	{"parallel calls", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{Tools: lookTools()}, nil, answer{calls: []string{`{"n":1}`, `"{\"n\":\"2\"}"`, `{"tags":"[\"a\"]","o":null}`}})
		wantCalls(t, r, err, `{"n":1}`, `{"n":2}`, `{"tags":["a"]}`)
	}},
	{"results", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{Tools: lookTools()}, nil, answer{text: "I look.", calls: []string{`{"n":1}`, `{"n":2}`}})
		if err != nil {
			t.Fatal(err)
		}
		first := r
		talk := append(answered(r), Message{Role: RoleUser, Text: "No more calls: answer now."})
		r, err = c.ask(t, Request{Tools: lookTools(), Choice: ChoiceNone, Messages: talk}, nil, answer{text: "done"})
		if err != nil || r.Text != "done" {
			t.Errorf("%+v, %v", r, err)
		}
		c.wantBack(t, first)
	}},
	{"only calls", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{Tools: lookTools()}, nil, answer{calls: []string{`{"n":1}`}})
		if err != nil {
			t.Fatal(err)
		}
		first := r
		r, err = c.ask(t, Request{Tools: lookTools(), Messages: answered(r)}, nil, answer{text: "done"})
		if err != nil || r.Text != "done" {
			t.Errorf("%+v, %v", r, err)
		}
		c.wantBack(t, first)
	}},
	{"structured output", func(t *testing.T, c *client) {
		t.Helper()
		tools := []Tool{{Name: "choose", Description: "Ends.", Schema: json.RawMessage(complexSchema)}}
		r, err := c.ask(t, Request{Tools: tools, Choice: ChoiceRequired}, nil, answer{final: `{"kind":"a","where":"{\"name\":\"x\"}","mail":null}`})
		wantCalls(t, r, err, `{"kind":"a","where":{"name":"x"},"mail":null}`)
	}},
	{"token limit", func(t *testing.T, c *client) {
		t.Helper()
		cut := c.server.p.cut
		for _, one := range []struct {
			ask     Request
			answers []answer
			text    string
			calls   []string
		}{
			{Request{}, []answer{{text: "it is fo", finish: cut}, {text: "rty two"}}, "it is forty two", nil},
			{Request{}, []answer{{text: "it is fo", finish: cut}, {text: "rty ", finish: cut}}, "it is forty " + cutMark, nil},
			{Request{}, []answer{{text: "it is fo", finish: cut}, {refusal: "no"}}, "it is fo" + cutMark, nil},
			{Request{MaxTokens: 3}, []answer{{text: "it is fo", finish: cut}}, "it is fo" + cutMark, nil},
			{Request{Tools: lookTools()}, []answer{{text: "I look.", calls: []string{`{"n":`}, finish: cut}, {calls: []string{`{"n":1}`}}}, "", []string{`{"n":1}`}},
			{Request{Tools: lookTools()}, []answer{{calls: []string{`{"n":1}`, `{"n":`}, finish: cut}}, "", []string{`{"n":1}`}},
		} {
			var h collector
			r, err := c.ask(t, one.ask, h.on, one.answers...)
			if wantCalls(t, r, err, one.calls...); r.Text != one.text || h.text() != one.text {
				t.Errorf("%q, heard %q, want %q", r.Text, h.pieces, one.text)
			}
		}
	}},
	{"refusal", func(t *testing.T, c *client) {
		t.Helper()
		_, err := c.ask(t, Request{}, nil, answer{refusal: "I cannot help with that."})
		wantError(t, err, false, "refused to answer")
	}},
	{"call as text", func(t *testing.T, c *client) {
		t.Helper()
		for _, pure := range []bool{true, false} {
			tools := lookTools()
			tools[0].Pure = pure
			var h collector
			leak := []answer{{text: c.server.p.leak}}
			if !pure || c.server.p.name == "Anthropic" { // no JSON
				leak = append(leak, answer{calls: []string{`{"n":1}`}})
			}
			r, err := c.ask(t, Request{Tools: tools}, h.on, leak...)
			wantCalls(t, r, err, `{"n":1}`)
			if h.text() != "" {
				t.Errorf("heard %q", h.pieces)
			}
		}
	}},
	{"no usage", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{}, nil, answer{text: strings.Repeat("word ", 100), dropsUsage: true})
		if err != nil || !r.Usage.Estimated || r.Usage.InputTokens < 10 || r.Usage.OutputTokens < 100 {
			t.Errorf("%+v, %v", r, err)
		}
	}},
	{"retry after", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{}, nil, answer{busy: true}, answer{text: "fine"})
		if err != nil || r.Text != "fine" || !slices.Equal(c.waits, []time.Duration{37 * time.Second}) {
			t.Errorf("%+v, %v, waits %v", r, err, c.waits)
		}
	}},
	{"idle stream", func(t *testing.T, c *client) {
		t.Helper()
		var h collector
		r, err := c.ask(t, Request{}, h.on, answer{hangs: true}, answer{text: "fine"})
		if err != nil || r.Text != "fine" || h.text() != "fine" {
			t.Errorf("%+v, %v, heard %q", r, err, h.pieces)
		}
	}},
	{"produce", func(t *testing.T, c *client) { // as POST /v1/produce asks: one forced call, and nothing else is read
		t.Helper()
		var h collector
		schema := json.RawMessage(`{"type":"object","properties":{"type":{"type":"string"},"args":{"type":"object"},"reason":{"type":"string"}},"additionalProperties":false}`)
		r, err := c.ask(t, Request{Tools: []Tool{{Name: "choose", Schema: schema}}, Choice: ChoiceRequired}, h.on, answer{final: `{"type":"kb.search","args":{"query":"x"}}`})
		wantCalls(t, r, err, `{"type":"kb.search","args":{"query":"x"}}`)
		if h.text() != "" || r.Text != "" {
			t.Errorf("shown: %q, text %q", h.pieces, r.Text)
		}
	}},
	{"takeover", func(t *testing.T, c *client) { // of a conversation that another model began
		t.Helper()
		other := &Response{Text: "", Calls: []Call{{"call.0|123456789012345678901234567890123456789", "look", `{"n":1}`}, {"1", "look", "{}"}}, Opaque: &Opaque{
			Model: "openai:other", Members: Members{"reasoning_content": json.RawMessage(`"hm"`)}, Calls: []Members{{"extra_content": json.RawMessage(`{"google":{}}`)}, nil},
		}}
		r, err := c.ask(t, Request{Tools: lookTools(), Messages: answered(other)}, nil, answer{text: "done"})
		if err != nil || r.Text != "done" {
			t.Errorf("%+v, %v", r, err)
		}
	}},
}

// ask asks the model for something, with every option that agents use.
func (c *client) ask(t *testing.T, r Request, on func(Event), answers ...answer) (*Response, error) {
	t.Helper()
	cold := 0.2
	r.System, r.Temperature, r.Stop = "You help.", &cold, []string{"END"}
	r.Messages = append([]Message{{Role: RoleUser, Text: "go"}}, r.Messages...)
	c.server.answers, c.waits = answers, nil
	return c.Respond(t.Context(), r, on)
}

// answered are the messages of a reply and of its results.
func answered(r *Response) []Message {
	talk := []Message{{Role: RoleAssistant, Text: r.Text, Calls: r.Calls, Opaque: r.Opaque}}
	for _, c := range r.Calls {
		talk = append(talk, Message{Role: RoleTool, CallID: c.ID, Text: `{"seen":true}`})
	}
	return talk
}

// wantBack checks that what only the model reads came back to it as it was.
func (c *client) wantBack(t *testing.T, r *Response) {
	t.Helper()
	for _, m := range c.server.last.messages() {
		for i, call := range m.calls() {
			if call["id"] != r.Calls[i].ID {
				t.Errorf("the id %v came back as %v", r.Calls[i].ID, call["id"])
			}
		}
		for name, v := range r.Opaque.Members {
			if back, _ := json.Marshal(m[name]); len(m.calls()) > 0 && string(back) != string(v) {
				t.Errorf("%s %s came back as %s", name, v, back)
			}
		}
	}
}

func wantCalls(t *testing.T, r *Response, err error, arguments ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Calls {
		got = append(got, c.Arguments)
	}
	values := func(texts []string) (out []any) {
		for _, s := range texts {
			var v any
			if json.Unmarshal([]byte(s), &v) != nil {
				v = "no JSON: " + s
			}
			out = append(out, v)
		}
		return out
	}
	if d := cmp.Diff(values(arguments), values(got)); d != "" {
		t.Error(d)
	}
}

// TestProviders lets agents' tasks be done by models of each provider. Each server refuses what
// that provider refuses; what a refusal teaches is remembered, so nothing is refused twice, and is
// logged once. The table of docs/models.md is the outcome.
func TestProviders(t *testing.T) {
	table := "| Provider | refuses | so writ sends | tasks |\n|---|---|---|---|\n"
	for _, p := range providers {
		c := newClient(t, &p)
		passed := 0
		t.Run(p.name, func(t *testing.T) {
			for _, task := range providerTasks {
				if t.Run(task.name, func(t *testing.T) {
					c.server.t = t
					synctest.Test(t, func(t *testing.T) { task.do(t, c) })
				}) {
					passed++
				}
			}
			for i, what := range c.server.refused {
				if slices.Contains(c.server.refused[i+1:], what) {
					t.Errorf("refused twice: %s", what)
				}
			}
		})
		var refuses, adapted []string
		for _, r := range p.refusals {
			refuses = append(refuses, "["+r.what+"]("+r.source+")")
		}
		for _, row := range adaptationTable {
			if c.learned()&row.do != 0 && row.log != "" {
				adapted = append(adapted, row.log)
				if n := strings.Count(c.log.String(), `adapted="`+row.log+`"`); n != 1 {
					t.Errorf("%s: %q is logged %d times", p.name, row.log, n)
				}
			}
		}
		table += fmt.Sprintf("| %s | %s | %s | %d of %d |\n", p.name, strings.Join(refuses, ", "), strings.Join(adapted, ", "), passed, len(providerTasks))
	}
	const path, begins, ends = "../../docs/models.md", "<!-- providers -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begins)
	_, after, ended := strings.Cut(rest, ends)
	want := before + begins + table + ends + after
	if found && ended && *updateTable {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(page)); d != "" {
		t.Errorf("docs/models.md is not what the test finds (go test ./agentic/model -run TestProviders -update):\n%s", d)
	}
}
