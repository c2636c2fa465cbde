package offline

import "strings"

// tools are ids of skills by the names of their tools, whose words people use: that of the
// server says nothing about a task. Of two with one name the second keeps its id.
type tools map[string]string

// name of a skill here.
func (t tools) name(id string) string {
	_, tool, ok := strings.Cut(id, ".")
	if other, taken := t[tool]; !ok || taken && other != id {
		return id
	}
	t[tool] = id
	return tool
}

func (t tools) shorten(skills []skill) {
	for i := range skills {
		skills[i].Name = t.name(skills[i].Name)
	}
}

// forget puts names in the place of ids.
func (t tools) forget(ids []string) {
	for i := range ids {
		ids[i] = t.name(ids[i])
	}
}

// restore gives the ids.
func (t tools) restore(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		if out[i] = t[name]; out[i] == "" {
			out[i] = name
		}
	}
	return out
}
