package agentic

import "aob.dev/writ/intents/catalog"

// identify replaces the names of tools, which a model may have written, with the ids of loaded
// skills where they are unambiguous.
func identify(steps []catalog.PlanStep, loaded map[string]catalog.Manifest) {
	ids := map[string][]string{}
	for id, m := range loaded {
		ids[m.Tool()] = append(ids[m.Tool()], id)
	}
	for _, s := range steps {
		for i, name := range s.Skills {
			if _, ok := loaded[name]; !ok && len(ids[name]) == 1 {
				s.Skills[i] = ids[name][0]
			}
		}
	}
}
