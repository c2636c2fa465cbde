package audit

import (
	"errors"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// checkSources compares the sources by which an accepted intent of a task was decided with those that
// the records before it give its plan, and notes which its outcome must add.
func (f *applier) checkSources(j *job, view *state.View, x *open) error {
	o := j.intent
	if o.inputs.Task == nil {
		return nil
	}
	was := o.inputs.Task.Sources
	if x.sources = was; state.AsksServer(o.body.Intent.Type) && o.inputs.Skill != nil {
		x.sources = intents.JoinSources(was, []intents.Source{o.inputs.Skill.Source()})
	}
	if !f.whole {
		return nil
	}
	var refs []string
	if !o.hidden() {
		row, _ := catalog.Builtin().Lookup(o.body.Intent.Type)
		named, err := catalog.InputsOf(row, o.body.Intent.Args)
		if err != nil {
			return err
		}
		for _, from := range named {
			ref := from.Ref
			if !slices.ContainsFunc(o.inputs.Inputs, func(in intents.HeldInput) bool { return in.Pointer == from.Pointer && in.SHA256 != "" }) {
				ref = state.Missing
			}
			refs = append(refs, ref)
		}
	}
	unknown := o.hidden() || f.artifacts && slices.ContainsFunc(refs, func(ref string) bool { return strings.HasPrefix(ref, "cas://") })
	is := view.Sources(x.tenant, o.ctx.PlanID, refs, j.now)
	if unknown {
		is = view.Sources(x.tenant, o.ctx.PlanID, nil, j.now)
	}
	if !slices.Equal(was, is) && !(unknown && intents.CoverSources(was, is)) {
		return errors.New("decided with other sources than its plan has read")
	}
	return nil
}

// addsSources: after the outcome of an intent that was carried out, its plan has its sources.
func (f *applier) addsSources(o *open, it *item) error {
	if o.typ == "artifact.put" && it.missing != nil {
		f.artifacts = true
	}
	if f.whole && o.task != nil && o.dispatched && !intents.CoverSources(f.state.SourcesOf(o.tenant, o.task.Plan), o.sources) {
		return errors.New("the outcome leaves out whose content the plan has read")
	}
	return nil
}
