package offline

import (
	"cmp"
	"encoding/json"
	"strings"

	"aob.dev/writ/schemas"
)

// execution is a step, and what was done for it so far.
type execution struct {
	task    string // of the step
	request string // of the user
	skills  []skill
	schema  json.RawMessage // of the step's result
	input   *result         // of an earlier step; nil: none
	calls   []exchange
}

// lack are the arguments of insufficient.
type lack struct {
	Reason     string `json:"reason"`
	Suggestion string `json:"suggestion"`
}

// doStep answers as the executor.
func doStep(c *conversation) (action, error) {
	var step struct {
		Skills []string        `json:"skills"`
		Schema json.RawMessage `json:"return_schema"`
	}
	x := execution{task: c.task, calls: c.calls}
	err := cmp.Or(c.block("[Step]", &step), c.block("[Request]", &x.request))
	if c.blocks["[Input]"] != "" {
		err = cmp.Or(err, c.block("[Input]", &x.input))
	}
	if err != nil {
		return action{}, err
	}
	x.skills, x.schema = c.skills(step.Skills), step.Schema
	act := x.next()
	if !c.offers(act.tool) {
		return lacks("The step cannot be done with the tools that are left.", ""), nil
	}
	return act, nil
}

// next calls the skill of the step, then takes the response as it is where that
// is the result, else has a script work on it.
func (x *execution) next() action {
	n := len(x.calls)
	if n == 0 {
		return x.begin()
	}
	last := x.calls[n-1]
	wrong := last.wrong()
	switch {
	case last.Name == execPython && wrong == "":
		return remember(last)
	case last.Name == writeMemory && n > 1 && x.calls[n-2].Name != execPython:
		return x.script(x.calls[n-2].result, x.skillOf(x.calls[n-2]).OutputSchema)
	case last.Name == execPython || last.Name == writeMemory:
		return lacks("no script gave the result that return_spec asks for: "+wrong, "ask for less, or for another shape")
	}
	return x.afterCall(last)
}

// begin does the first thing of a step.
func (x *execution) begin() action {
	skills := harmless(x.skills, x.request)
	switch {
	case len(x.skills) == 0 && x.input == nil:
		return lacks("The step has neither a skill to call nor an earlier result to work on.", "")
	case len(x.skills) == 0:
		return x.script(*x.input, nil)
	case len(skills) == 0:
		name := x.skills[0].Name
		return lacks(name+" changes something, and the task does not name it.", "Name "+name+" where it is meant.")
	}
	return x.call(skills[0])
}

func (x *execution) afterCall(last exchange) action {
	s := x.skillOf(last)
	wrong := last.wrong()
	switch {
	case wrong != "":
		return lacks(s.Name+" could not be used: "+wrong, "Try another skill.")
	case last.SizeBytes > 0:
		return x.script(last.result, s.OutputSchema)
	case len(last.Result) == 0:
		return lacks(s.Name+" returned nothing.", "Try another skill.")
	}
	if check, err := schemas.Compile(x.schema); err == nil && len(check.ValidateBytes(last.Result)) == 0 && x.order().plain() {
		return remember(last)
	}
	return x.script(last.result, s.OutputSchema)
}

// order is what the task asks of rows that have the members of the result.
func (x *execution) order() *reading {
	return read(new(table).addShape(x.schema), words(requestOf(x.task)), nil)
}

func (x *execution) skillOf(c exchange) skill {
	for _, s := range x.skills {
		if s.tool == c.Name {
			return s
		}
	}
	return skill{Name: c.Name}
}

func lacks(reason, suggestion string) action {
	return action{tool: insufficient, args: lack{sentence(reason), suggestion}}
}

func remember(x exchange) action {
	return action{tool: writeMemory, args: map[string]string{"from": x.Label}}
}

func (x *execution) script(data result, dataSchema json.RawMessage) action {
	return action{tool: execPython, args: map[string]string{"script": writeScript(x.task, x.schema, dataSchema), "from": data.Label}}
}

// call calls the skill with what the step's task or the result of an earlier step says.
func (x *execution) call(s skill) action {
	var given json.RawMessage
	if x.input != nil {
		given = x.input.Result
	}
	if isRanker(s) {
		order := x.order()
		if order.By == nil || !strings.HasPrefix(strings.TrimSpace(string(given)), "[") {
			return lacks(s.Name+" needs rows and what to order them by.", "")
		}
		rows, by, descending := rankArgs(s)
		args := map[string]any{rows: given, by: order.By.Name}
		if descending != "" {
			args[descending] = !order.Asc
		}
		return action{tool: s.tool, args: args}
	}
	args := fill(s, words(requestOf(x.task)), given)
	if len(args.missing) > 0 {
		return lacks(args.problem, "Say which one is meant.")
	}
	return action{tool: s.tool, args: args.input}
}
