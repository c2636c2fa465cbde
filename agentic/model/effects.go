package model

import "strings"

// harmless are the skills that the offline model may use for a task: those that
// only read, and those that the words of the task name. Shared words alone are no
// order to change the world: "show the last commit" must not commit.
func harmless(skills []Skill, task string) []Skill {
	var out []Skill
	for _, s := range skills {
		if s.Effect != "once" && s.Effect != "idempotent" || named(s.Name, task) {
			out = append(out, s)
		}
	}
	return out
}

// named reports whether a text holds the name of a skill as such: as it is
// written, or with spaces between its words.
func named(skill, text string) bool {
	plain := func(s string) string {
		return " " + strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
			return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r > 127)
		}), " ") + " "
	}
	name := plain(skill)
	return strings.TrimSpace(name) != "" && strings.Contains(plain(text), name)
}
