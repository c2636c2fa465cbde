package agents

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type ranker struct {
	_     struct{} `agent:"ranker" description:"You rank <outlets> & their \"stars\"."`
	Topic string   `json:"topic" description:"Primary topic of the question"`
	Order string   `json:"order,omitempty" description:"How to sort" enum:"up,down"`
	Rows  []row    `json:"rows"`

	_   int
	Not int `json:"-"`
}

type row struct {
	Name  string  `json:"name"`
	Stars float64 `json:"stars" description:"0 to 5"`
	Open  *bool   `json:"open"`
}

const rankerYAML = `
type: object
name: ranker
description: You rank <outlets> & their "stars".
properties:
  topic:
    type: string
    description: Primary topic of the question
  order:
    type: string
    description: How to sort
    enum: [up, down]
  rows:
    type: array
    items:
      type: object
      properties:
        name: {type: string}
        stars: {type: number, description: 0 to 5}
        open: {type: boolean}
      required: [name, stars]
      additionalProperties: false
required: [topic, rows]
structured_output: true
tools:
  - name: search
    description: Query KB using REM
  - server: crm
    name: list_outlets
    approval: {roles: [lead]}
temperature: 0.3
limits:
  request_limit: 10
examples: ["Which outlet is best?"]
is_default: false
confidence_threshold: 0.6
`

// TestThreeWays: an equivalent file, struct and literal give the same agent, and so does the
// agent's own encoding.
func TestThreeWays(t *testing.T) {
	file, err := Parse([]byte(rankerYAML))
	if err != nil {
		t.Fatal(err)
	}
	temperature := 0.3
	rest := Agent{
		Structured:  true,
		Tools:       []Tool{{Name: "search", Description: "Query KB using REM"}, {Server: "crm", Name: "list_outlets", Approval: &Approval{Roles: []string{"lead"}}}},
		Temperature: &temperature,
		Limits:      Limits{Requests: 10},
		Routing:     &Routing{Examples: []string{"Which outlet is best?"}, RoutingRule: RoutingRule{Threshold: 0.6}},
	}
	structure, err := Of[ranker](rest)
	if err != nil {
		t.Fatal(err)
	}
	rest.Name, rest.Description = "ranker", `You rank <outlets> & their "stars".`
	rest.Properties = Properties{
		{"topic", json.RawMessage(`{"type":"string","description":"Primary topic of the question"}`)},
		{"order", json.RawMessage(`{"type":"string","description":"How to sort","enum":["up","down"]}`)},
		{"rows", json.RawMessage(`{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"stars":{"type":"number","description":"0 to 5"},"open":{"type":"boolean"}},"required":["name","stars"],"additionalProperties":false}}`)},
	}
	rest.Required = []string{"topic", "rows"}
	literal, err := New(rest)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Read(fstest.MapFS{"agents/ranker.yaml": {Data: text}}, environment)
	if err != nil {
		t.Fatal(err)
	}
	written, _ := r.Agent("ranker")
	for way, a := range map[string]*Agent{"struct": structure, "literal": literal} {
		if d := cmp.Diff(file, a); d != "" {
			t.Errorf("%s (-file +got):\n%s", way, d)
		}
	}
	if d := cmp.Diff(file.Tools, written.Tools); d != "" || file.System("") != written.System("") {
		t.Errorf("what the agent writes is another agent:\n%s", d)
	}
	if file.System("") != structure.System("") || file.Limits.Requests != 10 || file.Limits.Tokens != DefaultTokens {
		t.Errorf("%+v", file)
	}
}

// TestOfTypes: the encoding/json output of a type matches its schema.
func TestOfTypes(t *testing.T) {
	type all struct {
		_     struct{} `agent:"all" description:"d"`
		At    time.Time
		Bytes map[string]int
		Raw   json.RawMessage `json:"raw"`
		Any   any             `json:"any"`
		N     uint8           `json:"n"`
		Deep  struct {
			X [2]bool `json:"x"`
		} `json:"deep"`
	}
	a, err := Of[all](Agent{Structured: true})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"At":{"type":"string","format":"date-time"},"Bytes":{"type":"object","additionalProperties":{"type":"integer"}},"raw":{},"any":{},"n":{"type":"integer"},` +
		`"deep":{"type":"object","properties":{"x":{"type":"array","items":{"type":"boolean"}}},"required":["x"],"additionalProperties":false}},"required":["At","Bytes","raw","any","n","deep"],"additionalProperties":false}`
	if got := string(a.OutputSchema()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

type itself struct {
	Next *itself `json:"next"`
}

func TestOfRefuses(t *testing.T) {
	for want, err := range map[string]error{
		"is no struct":                 second(Of[int](Agent{})),
		"agents.itself.Next":           second(Of[itself](Agent{Name: "a", Description: "d"})),
		"has no JSON Schema":           second(Of[struct{ F func() }](Agent{Name: "a", Description: "d"})),
		"give the embedded field":      second(Of[struct{ Tool }](Agent{Name: "a", Description: "d"})),
		"/name: must match":            second(Of[struct{ X int }](Agent{Description: "d"})),
		"/description: must have":      second(New(Agent{Name: "a"})),
		"unexpected end of JSON":       second(New(Agent{Name: "a", Description: "d", Properties: Properties{{"x", json.RawMessage(`{`)}}})),
		"/sub_agents: do not go with":  second(New(Agent{Name: "a", Description: "d", Tools: []Tool{{Name: AskAgent}}, SubAgents: []string{"b"}})),
		"/type: must be \"mcp\"":       second(New(Agent{Name: "a", Description: "d", Type: "object", Endpoint: "https://a.example"})),
		"/properties/x: member stands": second(New(Agent{Name: "a", Description: "d", Properties: Properties{{"x", json.RawMessage(`{}`)}, {"x", json.RawMessage(`{}`)}}})),
		"/properties/a b: is no name ": second(New(Agent{Name: "a", Description: "d", Properties: Properties{{"a b", json.RawMessage(`{}`)}}})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func second(_ *Agent, err error) error { return err }
