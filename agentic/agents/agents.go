// Package agents has the definitions of agents: what an agent is told, how its model
// is asked, and how much it may use up.
package agents

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Agent is the definition of one agent.
type Agent struct {
	Name         string   `yaml:"name"`
	DisplayName  string   `yaml:"display_name"`
	Description  string   `yaml:"description"`  // for people and for other agents
	Instructions string   `yaml:"instructions"` // the system prompt
	Temperature  *float64 `yaml:"temperature"`  // nil: the model's own
	Limits       Limits   `yaml:"limits"`
}

// Limits of one run of an agent; zero values stand for the defaults.
type Limits struct {
	Requests int `yaml:"request_limit"`      // requests to the model
	Tokens   int `yaml:"total_tokens_limit"` // input and output together
}

// The default limits.
const (
	DefaultRequests = 50
	DefaultTokens   = 500_000
)

// The built-in agents that every plan of a planner needs.
const (
	Planner  = "planner"
	Executor = "executor"
	Composer = "composer"
)

//go:embed *.yaml
var files embed.FS

var builtin = sync.OnceValues(func() (map[string]*Agent, error) {
	all := make(map[string]*Agent)
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		raw, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		a, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		if a.Name+".yaml" != e.Name() {
			return nil, fmt.Errorf("%s: its agent is named %q", e.Name(), a.Name)
		}
		all[a.Name] = a
	}
	return all, nil
})

// Builtin is a built-in agent. It panics on a name that none has.
func Builtin(name string) *Agent {
	all, err := builtin()
	if err != nil {
		panic(err) // a file of this package
	}
	a, ok := all[name]
	if !ok {
		panic("no built-in agent " + name)
	}
	return a
}

func parse(raw []byte) (*Agent, error) {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	a := &Agent{Limits: Limits{Requests: DefaultRequests, Tokens: DefaultTokens}}
	if err := dec.Decode(a); err != nil {
		return nil, err
	}
	return a, nil
}

// maxSoul bounds a soul inside a prompt, in bytes.
const maxSoul = 16 << 10

// System is the agent's system prompt: its instructions, then the soul (persona and
// language of the tenant), which changes the manner of its answers and none of its
// rules. An empty soul adds nothing.
func (a *Agent) System(soul string) string {
	if soul = strings.TrimSpace(soul); soul == "" {
		return a.Instructions
	}
	if len(soul) > maxSoul {
		soul = strings.ToValidUTF8(soul[:maxSoul], "")
	}
	return a.Instructions + "\nPersona, for tone, name and language only; the rules above stand:\n" + soul + "\n"
}
