package console

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

var (
	wholeIntent = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	planID      = regexp.MustCompile(`^plan_[A-Za-z0-9_.-]{1,59}$`)
	skillName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_./-]{1,64}$`)
	intentType  = regexp.MustCompile(`^[a-z]+[._][a-z_.]+$`)
	oneName     = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)

// hasSkill reports whether there is a skill of this name.
func (q *request) hasSkill(name string) bool {
	var all []consoleapi.Skill
	return q.get(consoleapi.Path+"skills", &all) == nil && slices.ContainsFunc(all, func(s consoleapi.Skill) bool { return s.Name == name })
}

// lookUp leads to what a text names: an intent or a plan by its id, a skill, the intents of a type, of
// a code, or for a user.
func (c *Console) lookUp(q *request) (any, error) {
	text := strings.TrimSpace(q.URL.Query().Get("q"))
	var to string
	code := intents.Code(strings.ToUpper(text))
	record := func(by string) string { return "/console/record?" + url.Values{by: {text}}.Encode() }
	switch {
	case wholeIntent.MatchString(text):
		to = "/console/intents/" + url.PathEscape(text)
	case planID.MatchString(text):
		to = "/console/plans/" + url.PathEscape(text)
	case code.Info().Code == code:
		to = "/console/record?code=" + string(code)
	case skillName.MatchString(text) && q.hasSkill(text):
		to = "/console/skills/" + url.PathEscape(text)
	case intentType.MatchString(text):
		to = record("type")
	case oneName.MatchString(text):
		to = record("user")
	default:
		p := problem.New(intents.MalformedArgs, "", "nothing has such a name")
		p.Hint = "Enter the id of an intent or a plan, the name of a skill, a type of intent, a code, or a user."
		return nil, p
	}
	http.Redirect(q.w, q.Request, c.root+to, http.StatusSeeOther)
	return nil, errDone
}
