package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// SkillServer is an entry of skills with members, which only the file can have. Whoever needs the
// servers reads it.
type SkillServer struct {
	Place string // for messages, like "writ.yaml: skills[0]"
	Node  *yaml.Node
}

// skillEntries divides the entries of skills: texts stay in the list, and those with
// members are returned.
func skillEntries(list *yaml.Node, path string) (servers []SkillServer) {
	if list.Kind != yaml.SequenceNode {
		return nil // refused by the caller
	}
	texts := []*yaml.Node{}
	for i, n := range list.Content {
		entry := n
		if n.Kind == yaml.AliasNode {
			entry = n.Alias
		}
		if entry.Kind == yaml.MappingNode {
			servers = append(servers, SkillServer{Place: fmt.Sprintf("%s: skills[%d]", path, i), Node: entry})
		} else {
			texts = append(texts, n)
		}
	}
	list.Content = texts
	return servers
}
