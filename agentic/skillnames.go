package agentic

import "aob.dev/writ/intents/catalog"

// identify replaces the names of tools, which a model may have written, with the ids of loaded
// skills where they are unambiguous.
func identify(p planArgs, loaded map[string]catalog.Manifest) {
	ids := map[string][]string{}
	for id, m := range loaded {
		ids[m.Tool()] = append(ids[m.Tool()], id)
	}
	id := func(name *string) {
		if _, ok := loaded[*name]; !ok && len(ids[*name]) == 1 {
			*name = ids[*name][0]
		}
	}
	for _, s := range p.Steps {
		for i := range s.Skills {
			id(&s.Skills[i])
		}
	}
	for i := range p.Calls {
		id(&p.Calls[i].Skill)
	}
}
