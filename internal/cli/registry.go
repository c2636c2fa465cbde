package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/state/workflows"
	"aob.dev/writ/upkeep"
)

// readRegistry reads the registry in a directory. The error is agents.Faults, or exit 3.
func (c *command) readRegistry(dir string) (*agents.Revision, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, malformed(err)
	} else if !info.IsDir() {
		return nil, malformed(fmt.Errorf("%s is a file: name the directory that has the agents", dir))
	}
	cfg, err := config.Load("", c.std.Env)
	if err != nil {
		return nil, malformed(err)
	}
	r, err := agents.ReadDir(dir, c.std.Env, cfg.AgentVariables, cfg.AgentHosts...)
	var faults agents.Faults
	switch {
	case errors.As(err, &faults):
		return nil, inside(dir, faults)
	case err != nil:
		return nil, malformed(fmt.Errorf("%s: %w", dir, err))
	case len(r.Files()) == 0:
		return nil, append(inside(dir, r.Notices), agents.Fault{File: dir, Reason: "has no agents: write one as agents/<name>.yaml"})
	}
	return r, nil
}

// soundRegistry is a registry that breaks no rule.
func (c *command) soundRegistry(dir string) (*agents.Revision, error) {
	r, err := c.readRegistry(dir)
	if err == nil {
		fmt.Fprint(c.std.Err, lines(inside(dir, r.Notices)))
		err = checkRegistry(dir, r)
	}
	if faults, ok := errors.AsType[agents.Faults](err); ok {
		err = fmt.Errorf("the registry in %s is not sound:\n%w", dir, faults)
	}
	return r, err
}

func checkRegistry(dir string, r *agents.Revision) error {
	err := r.Check()
	if faults, ok := errors.AsType[agents.Faults](err); ok {
		err = inside(dir, faults)
	}
	return err
}

// inside names the files of faults as the user can open them.
func inside(dir string, faults agents.Faults) agents.Faults {
	out := agents.Faults{}
	for _, f := range faults {
		f.File = filepath.Join(dir, f.File)
		out = append(out, f)
	}
	return out
}

func registryCheck(c *command) {
	c.answer = func(args []string) (answer, error) {
		said := struct {
			OK      bool          `json:"ok"`
			Digest  string        `json:"digest,omitempty"`
			Agents  int           `json:"agents"`
			Flows   int           `json:"workflows"`
			Faults  agents.Faults `json:"faults"`
			Notices agents.Faults `json:"notices"`
		}{Faults: agents.Faults{}, Notices: agents.Faults{}}
		r, err := c.readRegistry(args[0])
		if err == nil {
			said.Notices = inside(args[0], r.Notices)
			err = checkRegistry(args[0], r)
		}
		if err != nil && !errors.As(err, &said.Faults) {
			return answer{}, err
		}
		a := answer{text: lines(said.Faults), note: lines(said.Notices), end: unless(err == nil, "not sound")}
		if err == nil {
			said.OK, said.Digest, said.Agents, said.Flows = true, r.Digest(), len(r.Agents), len(r.Workflows)
			a.text = fmt.Sprintf("sound   %s\nagents  %d\n", said.Digest, said.Agents)
			if said.Flows > 0 {
				a.text += fmt.Sprintf("workflows  %d\n", said.Flows)
			}
		}
		a.data = said
		return a, nil
	}
}

// lines are faults, one a line.
func lines(faults agents.Faults) string {
	if len(faults) == 0 {
		return ""
	}
	return printable(faults.Error()) + "\n"
}

// agentSet are the agents of a registry layered over the built-in ones.
type agentSet struct {
	all    []*agents.Definition // the built-in ones first
	dir    string
	scopes agents.Scopes
	flows  []*workflows.Definition
}

// agentSet of the registry in a directory; none: the built-in agents alone.
func (c *command) agentSet(dir []string) (s agentSet, err error) {
	s.all = agents.Builtins()
	var layers []agents.Scopes
	if len(dir) > 0 {
		s.dir = dir[0]
		r, err := c.soundRegistry(s.dir)
		if err != nil {
			return s, err
		}
		s.all, s.flows = append(s.all, r.Agents...), r.Workflows
		layers = append(layers, r.Scopes())
	}
	s.scopes, err = agents.Effective(agents.BuiltinScopes(), layers...)
	return s, err
}

// builtIn is the origin of an agent whose file is a part of writ.
const builtIn = "built-in"

// from is the origin of an agent: the path of its file.
func (s agentSet) from(i int) string {
	if i < len(agents.Builtins()) {
		return builtIn
	}
	return filepath.Join(s.dir, s.all[i].File)
}

// name is that of an agent: another one for a built-in agent that the directory replaces.
func (s agentSet) name(i int) string {
	name := s.all[i].Name
	if slices.ContainsFunc(s.all[i+1:], func(d *agents.Definition) bool { return d.Name == name }) {
		return "writ/" + name
	}
	return name
}

// Modes of agents, by the kind of their answer.
const (
	conversational = "conversational" // text
	structured     = "structured"     // an object
	signing        = "intents"        // of the planner and the executor: intents alone
	remote         = "remote"         // its server's answer
)

func modeOf(a *agents.Agent) string {
	switch {
	case a.Endpoint != "":
		return remote
	case a.Name == agents.Planner || a.Name == agents.Executor:
		return signing
	case a.Structured:
		return structured
	}
	return conversational
}

// flowRow is a workflow in a list: its tools and agents are those that its nodes call and run.
func flowRow(d *workflows.Definition, from string) agentRow {
	row := agentRow{d.WorkflowID, from, "workflow", d.Description, []string{}, []string{}}
	for _, n := range d.Nodes {
		switch n.Type {
		case workflows.Function:
			row.Tools = append(row.Tools, n.Fn)
		case workflows.Agent:
			row.SubAgents = append(row.SubAgents, n.Fn)
		}
	}
	return row
}

// agentRow is an agent or a workflow in a list.
type agentRow struct {
	Name        string   `json:"name"`
	From        string   `json:"from"`
	Mode        string   `json:"mode"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
	SubAgents   []string `json:"sub_agents"`
}

func registryList(c *command) {
	c.answer = func(args []string) (answer, error) {
		set, err := c.agentSet(args)
		if err != nil {
			return answer{}, err
		}
		rows := make([]agentRow, 0, len(set.all))
		for i, d := range set.all {
			row := agentRow{set.name(i), set.from(i), modeOf(d.Agent), d.Description, []string{}, append([]string{}, d.SubAgents...)}
			for _, t := range d.Tools {
				row.Tools = append(row.Tools, t.ID())
			}
			rows = append(rows, row)
		}
		for _, d := range set.flows {
			rows = append(rows, flowRow(d, filepath.Join(set.dir, d.File)))
		}
		return answer{data: rows, text: render("agents.table", rows)}, nil
	}
}

func registryShow(c *command) {
	prompt := c.Flags().Bool("prompt", false, "print the system prompt alone")
	c.ValidArgsFunction = firstWord(c.completes(func(string) completion {
		return func(yield func(word, about string) bool) {
			for _, d := range agents.Builtins() {
				if !yield(d.Name, builtIn) {
					return
				}
			}
		}
	}))
	c.answer = func(args []string) (answer, error) {
		set, err := c.agentSet(args[1:])
		if err != nil {
			return answer{}, err
		}
		var names []string
		at := -1
		for i := range set.all {
			names = append(names, set.name(i))
			if names[i] == args[0] {
				at = i
			}
		}
		for _, d := range set.flows {
			if names = append(names, d.WorkflowID); at < 0 && d.WorkflowID == args[0] {
				return answer{data: d.Graph, text: printable(string(d.Text))}, nil
			}
		}
		if at < 0 {
			return answer{}, fmt.Errorf("there is no agent or workflow %q%s", args[0], didYouMean(args[0], names))
		}
		d := set.all[at]
		shown := shownAgent{
			Name: names[at], From: set.from(at), Mode: modeOf(d.Agent), Digest: d.Digest, Definition: d.Agent,
			Result: d.OutputSchema(), Set: names, text: d.Text,
		}
		if shown.Mode != remote {
			shown.Prompt = d.System("")
		}
		scopes := set.scopes.Agents
		if names[at] != d.Name {
			scopes = agents.BuiltinScopes().Agents
		}
		for _, s := range scopes {
			if s.Name == d.Name {
				shown.Scope = s
			}
		}
		switch {
		case !*prompt:
			return answer{data: shown, text: shown.String()}, nil
		case shown.Mode == remote:
			return answer{}, fmt.Errorf("%s is a remote agent: its server has the prompt", d.Name)
		case terminal(c.std.Out):
			return answer{data: shown.Prompt, text: printable(shown.Prompt)}, nil
		}
		return answer{data: shown.Prompt, text: shown.Prompt}, nil
	}
}

// shownAgent is all that is known of an agent.
type shownAgent struct {
	Name       string          `json:"name"`
	From       string          `json:"from"`
	Mode       string          `json:"mode"`
	Digest     string          `json:"digest"` // of the file
	Scope      agents.Scope    `json:"scope"`
	Set        []string        `json:"set"` // the agents that there are with it
	Definition *agents.Agent   `json:"definition"`
	Prompt     string          `json:"prompt,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"` // schema of a structured result

	text []byte // of the file
}

func (s shownAgent) String() string {
	var b strings.Builder
	b.WriteString(render("agent.table", s))
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "\n--- %s ---\n%s\n", title, strings.TrimSuffix(text, "\n"))
		}
	}
	section("definition", string(s.text))
	section("system prompt", s.Prompt)
	section("schema of the result", string(s.Result))
	return printable(b.String())
}

func agentProbe(c *command) {
	c.answer = func(args []string) (answer, error) {
		cfg, err := config.Load("", c.std.Env)
		if err != nil {
			return answer{}, malformed(err)
		}
		check := upkeep.AgentCheck{Endpoint: args[0], Timeout: mcp.DefaultTimeout, Named: egress.Transport(args[0]), Public: egress.Transport(cfg.AgentHosts...)}
		if len(args) > 1 {
			if check.File, err = os.ReadFile(args[1]); err != nil {
				return answer{}, malformed(err)
			}
		}
		points := check.Run(c.Context())
		p := painter(c.std, c.std.Out)
		marks := map[string]string{upkeep.PointPass: p.green("pass"), upkeep.PointFail: p.red("FAIL"), upkeep.PointUnknown: "  ? "}
		count := map[string]int{}
		for _, x := range points {
			count[x.State]++
		}
		probed := probedAgent{args[0], points, marks}
		a := answer{text: render("probed", probed), data: probed}
		a.note = fmt.Sprintf("%d points pass, %d fail, %d cannot be seen from here\n", count[upkeep.PointPass], count[upkeep.PointFail], count[upkeep.PointUnknown])
		if n := count[upkeep.PointFail]; n > 0 {
			a.end = fmt.Errorf("%d of %d points fail: mend them before people use this agent", n, len(points))
		}
		return a, nil
	}
}

// probedAgent is the output of `writ registry probe`.
type probedAgent struct {
	Endpoint string              `json:"endpoint"`
	Points   []upkeep.AgentPoint `json:"points"`
	Marks    map[string]string   `json:"-"` // of their states
}
