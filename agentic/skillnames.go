package agentic

// idOf returns the id of a loaded skill. A model may have written the name of its tool instead, as
// it is offered or as its server has it: that counts if it is unambiguous.
func (w *planning) idOf(name string) (id string, ok bool) {
	if _, ok := w.loaded[name]; ok {
		return name, true
	}
	if id, ok := w.offered[name]; ok {
		return id, true
	}
	for at, m := range w.loaded {
		if m.Tool() != name {
			continue
		}
		if id != "" {
			return "", false
		}
		id = at
	}
	return id, id != ""
}

// identify replaces the names in a plan with the ids of loaded skills.
func (w *planning) identify(p planArgs) {
	replace := func(name *string) {
		if id, ok := w.idOf(*name); ok {
			*name = id
		}
	}
	for _, s := range p.Steps {
		for i := range s.Skills {
			replace(&s.Skills[i])
		}
	}
	for i := range p.Calls {
		replace(&p.Calls[i].Skill)
	}
}
