package offline

import (
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/schemas"
)

// ability says what can be asked.
const ability = "This is the offline model: it lists, counts, adds up, averages, filters and sorts what skills return, asked in their own words."

// chats are what people say that asks for nothing.
var chats = []struct {
	said   *regexp.Regexp
	answer string
}{
	{regexp.MustCompile(`^(hello|hi|hey|good (morning|afternoon|evening|day))( there| all)?$`), "Hello! " + ability},
	{regexp.MustCompile(`^(many )?(thanks|thank you)( a lot| so much| very much)?$`), "You are welcome."},
	{regexp.MustCompile(`^((hello|hi|hey) )?((who|what) are you|what can you do|help( me)?)$`), ability},
}

// smallTalk answers what asks for nothing; empty: this asks for something, or it
// names a skill.
func smallTalk(text string, skills []skill) string {
	if slices.ContainsFunc(skills, func(s skill) bool { return named(s.Name, text) }) {
		return ""
	}
	text = strings.Join(parts(text), " ")
	for _, c := range chats {
		if c.said.MatchString(text) {
			return c.answer
		}
	}
	return ""
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
