package offline

import (
	"encoding/json"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/schemas"
)

// chooseAction calls the skill of the step, then takes the response as it is
// where that is the result, else has a script work on it.
func chooseAction(in model.ActionInput) model.ActionOutput {
	skills := harmless(in.Skills, in.UserTask)
	switch n := len(in.Calls); {
	case n > 0 && in.Calls[n-1].Error == "":
		return afterCall(in, in.Calls[n-1])
	case len(in.Skills) == 0 && len(in.Input) == 0:
		return insufficient("The step has neither a skill to call nor an earlier result to work on.", "")
	case len(in.Skills) == 0:
		return extract("The result is computed from the earlier step's.")
	case len(skills) == 0:
		name := in.Skills[0].Name
		return insufficient(name+" changes something, and the task does not name it.", "Name "+name+" where it is meant.")
	case n > 0:
		last := in.Calls[n-1]
		return insufficient(last.Skill+" could not be used: "+last.Error, "Try another skill.")
	case len(in.Violations) > 0:
		return insufficient("The skill could not be called: "+in.Violations[0], "")
	}
	return call(in, skills[0])
}

func afterCall(in model.ActionInput, last model.CallResult) model.ActionOutput {
	switch {
	case last.Large:
		return extract("The response is too large to be the result.")
	case len(last.Output) == 0:
		return insufficient(last.Skill+" returned nothing.", "Try another skill.")
	}
	s, err := schemas.Compile(in.Schema)
	if err == nil && len(in.Violations) == 0 && len(s.ValidateBytes(last.Output)) == 0 && read(new(table).addShape(in.Schema), words(requestOf(in.Task)), nil).plain() {
		return model.ActionOutput{Action: model.ActFinish, Input: json.RawMessage("{}"), Reason: "The response is the result."}
	}
	return extract("The result is computed from the response of " + last.Skill + ".")
}

func insufficient(reason, suggestion string) model.ActionOutput {
	return model.ActionOutput{Action: model.ActInsufficient, Input: json.RawMessage("{}"), Reason: sentence(reason), Suggestion: suggestion}
}

func extract(reason string) model.ActionOutput {
	return model.ActionOutput{Action: model.ActExtract, Input: json.RawMessage("{}"), Reason: reason}
}

// call calls the skill with what the step's task or the result of an earlier step says.
func call(in model.ActionInput, s model.Skill) model.ActionOutput {
	var input any
	if isRanker(s) {
		order := read(new(table).addShape(in.Schema), words(requestOf(in.Task)), nil)
		if order.By == nil || !strings.HasPrefix(strings.TrimSpace(string(in.Input)), "[") {
			return insufficient(s.Name+" needs rows and what to order them by.", "")
		}
		rows, by, descending := rankArgs(s)
		args := map[string]any{rows: in.Input, by: order.By.Name}
		if descending != "" {
			args[descending] = !order.Asc
		}
		input = args
	} else {
		args := fill(s, words(requestOf(in.Task)), in.Input)
		if len(args.missing) > 0 {
			return insufficient(args.problem, "Say which one is meant.")
		}
		input = args.input
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return insufficient("The input of "+s.Name+" cannot be written.", "")
	}
	return model.ActionOutput{Action: model.ActCall, Skill: s.Name, Input: raw, Reason: s.Name + " is the skill of this step."}
}
