package offline

import (
	"encoding/json"
	"slices"
	"strings"

	"aob.dev/writ/schemas"
)

// execution is a step, and what was done for it so far.
type execution struct {
	Task    string          `json:"task"`
	Schema  json.RawMessage `json:"return_schema"`
	request string          // of the user
	skills  []skill
	input   exchange // the result of an earlier step, if it has a label
	calls   []exchange
}

// lack are the arguments of insufficient.
type lack struct {
	Reason     string `json:"reason"`
	Suggestion string `json:"suggestion"`
}

func lacks(reason, suggestion string) action {
	return action{tool: "insufficient", args: lack{sentence(reason), suggestion}}
}

// doStep answers as the executor.
func doStep(c *conversation) action {
	x := execution{skills: c.skills(), calls: c.calls}
	c.block("[Step]", &x)
	c.block("[Request]", &x.request)
	if c.blocks["[Input]"] != "" {
		c.block("[Input]", &x.input)
	}
	if act := x.next(); c.offers(act.tool) {
		return act
	}
	return lacks("The step cannot be done with the tools that are left.", "")
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
	case last.Name == "exec_python" && wrong == "":
		return action{tool: "write_memory", args: map[string]string{"from": last.Label}}
	case last.Name == "write_memory" && n > 1 && x.calls[n-2].Name != "exec_python":
		return x.script(&x.calls[n-2])
	case last.Name == "exec_python" || last.Name == "write_memory":
		return lacks("no script gave the result that return_spec asks for: "+wrong, "ask for less, or for another shape")
	case wrong != "":
		return lacks(last.Name+" could not be used: "+wrong, "Try another skill.")
	case last.SizeBytes == 0 && len(last.Result) == 0:
		return lacks(last.Name+" returned nothing.", "Try another skill.")
	}
	if s, err := schemas.Compile(x.Schema); err == nil && len(s.ValidateBytes(last.Result)) == 0 && x.order().plain() {
		return action{tool: "write_memory", args: map[string]string{"from": last.Label}}
	}
	return x.script(&last)
}

// begin does the first thing of a step.
func (x *execution) begin() action {
	skills := harmless(x.skills, x.request)
	switch {
	case len(skills) > 0:
		return x.call(skills[0])
	case len(x.skills) > 0:
		name := x.skills[0].Name
		return lacks(name+" changes something, and the task does not name it.", "Name "+name+" where it is meant.")
	case x.input.Label == "":
		return lacks("The step has neither a skill to call nor an earlier result to work on.", "")
	}
	return x.script(&x.input)
}

// order is what the task asks of rows that have the members of the result.
func (x *execution) order() *reading {
	return read(new(table).addShape(x.Schema), words(requestOf(x.Task)), nil)
}

// script has a script work on data that a tool returned.
func (x *execution) script(data *exchange) action {
	var returns json.RawMessage
	if i := slices.IndexFunc(x.skills, func(s skill) bool { return s.Name == data.Name }); i >= 0 {
		returns = x.skills[i].OutputSchema
	}
	script := writeScript(x.Task, x.Schema, returns)
	return action{tool: "exec_python", args: map[string]string{"script": script, "from": data.Label}}
}

// call calls the skill with what the step's task or the result of an earlier step says.
func (x *execution) call(s skill) action {
	if !isRanker(s) {
		args := fill(s, words(requestOf(x.Task)), x.input.Result)
		if len(args.missing) > 0 {
			return lacks(args.problem, "Say which one is meant.")
		}
		return action{tool: s.Name, args: args.input}
	}
	order := x.order()
	if order.By == nil || !strings.HasPrefix(string(x.input.Result), "[") {
		return lacks(s.Name+" needs rows and what to order them by.", "")
	}
	rows, by, descending := rankArgs(s)
	args := map[string]any{rows: x.input.Result, by: order.By.Name}
	if descending != "" {
		args[descending] = !order.Asc
	}
	return action{tool: s.Name, args: args}
}

// converse answers for an agent that is not known here: it does what one step
// could do for the message, and says the result.
func converse(c *conversation) action {
	x := execution{request: c.task, skills: c.skills(), calls: c.calls}
	if answer := smallTalk(c.task, x.skills); answer != "" {
		return action{text: answer}
	}
	p := writePlan(planInput{Task: c.task, Skills: x.skills, FirstStep: 1, MaxSteps: 1})
	if p.Infeasible != "" {
		return action{text: apology(c.task, p.Infeasible)}
	}
	step := p.Steps[0]
	x.Task = step.Task
	x.Schema, _ = schemas.CompileShape(step.ReturnSpec.Shape) // of this package
	x.skills = slices.DeleteFunc(x.skills, func(s skill) bool { return s.Name != step.Skills[0] })
	act := x.next()
	if why, ok := act.args.(lack); ok {
		return action{text: apology(c.task, why.Reason)}
	}
	if act.tool != "write_memory" && c.offers(act.tool) {
		return act
	}
	if n := len(c.calls); n > 0 && len(c.calls[n-1].Result) > 0 && (act.tool == "write_memory" || x.order().plain()) {
		return action{text: compose(stepResult{Step: step, Result: c.calls[n-1].Result})}
	}
	return action{text: apology(c.task, ability)}
}
