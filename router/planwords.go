package router

import (
	"encoding/json"
	"fmt"
	"slices"

	"aob.dev/writ/intents/catalog"
)

// Said are the positions of the orders that hold the words of a plan, in order, where
// the fold has dropped them; none: it has them. The router carried these orders out,
// so that no erasure takes their words away.
func (d *Directory) Said(tenant, id string) []int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	p, ok := d.plans[tenant+"/"+id]
	if !ok || !d.forgetful || !final(p.view.Status) {
		return nil
	}
	return slices.Clone(p.said)
}

// Retell puts the words of one of these orders back into a plan, whose steps must be
// the caller's own.
func Retell(p *catalog.PlanView, s Summary) error {
	switch s.Type {
	case typePlanOpen:
		var a catalog.PlanOpen
		err := json.Unmarshal(s.Args, &a)
		p.Task = a.Task
		return err
	case "plan":
		var a catalog.Plan
		if err := json.Unmarshal(s.Args, &a); err != nil {
			return err
		}
		for _, said := range a.Steps {
			for i := range p.Steps {
				if at := &p.Steps[i]; at.Step == said.Step && at.Revision == a.Revision {
					at.Task = said.Task
				}
			}
		}
		return nil
	case "plan.close":
		var a catalog.PlanClose
		err := json.Unmarshal(s.Args, &a)
		p.Response = a.Response
		return err
	default:
		return fmt.Errorf("%s has no words of a plan", s.Type)
	}
}
