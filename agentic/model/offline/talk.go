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
func converse(c *conversation) (action, error) {
	x := execution{request: c.task, skills: c.skills(nil), calls: c.calls}
	if answer := smallTalk(c.task, x.skills); answer != "" {
		return says(answer)
	}
	p := writePlan(planInput{Task: c.task, Skills: x.skills, FirstStep: 1, MaxSteps: 1})
	if p.Infeasible != "" {
		return says(apology(c.task, p.Infeasible))
	}
	step := p.Steps[0]
	var err error
	if x.schema, err = schemas.CompileShape(step.ReturnSpec.Shape); err != nil {
		return says(apology(c.task, ""))
	}
	x.task = step.Task
	x.skills = slices.DeleteFunc(x.skills, func(s skill) bool { return !slices.Contains(step.Skills, s.Name) })
	act := x.next()
	if why, ok := act.args.(lack); ok {
		return says(apology(c.task, why.Reason))
	}
	asItIs := act.tool == execPython && !c.offers(execPython) && x.order().plain()
	if n := len(c.calls); n > 0 && (asItIs || act.tool == writeMemory) {
		if c.calls[n-1].SizeBytes > 0 {
			return says(apology(c.task, "The result is too large to show."))
		}
		return says(compose(stepResult{Step: step, Result: c.calls[n-1].Result}))
	}
	if !c.offers(act.tool) {
		return says(apology(c.task, ability))
	}
	return act, nil
}
