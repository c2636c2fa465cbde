package state

import (
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents"
)

// SkillNamed is the approved skill that an argument names: by its id, or by the name of its tool
// alone, which is MALFORMED_ARGS if two servers of the tenant have that tool. ok is false if
// none is approved.
func (d *Directory) SkillNamed(tenant, name string) (pin intents.Pin, ok bool, err error) {
	if pin, ok = d.Pin(tenant, name); ok || d.tenants[tenant] == nil {
		return pin, ok, nil
	}
	pins := d.tenants[tenant].Pins
	for _, id := range slices.Sorted(maps.Keys(pins)) {
		if !pins[id].OfTool(name) {
			continue
		}
		if ok {
			return intents.Pin{}, false, illegal("/intent/args/skill", fmt.Sprintf("two servers have this tool: write %s or %s", pin.Skill, id))
		}
		pin, ok = pins[id], true
	}
	return pin, ok, nil
}

// SkillOf is the approved skill that an argument names, for an intent of a task or of none: the
// remote agent that the task stands for, or the result of Directory.SkillNamed.
func (d *Directory) SkillOf(t *Task, tenant, name string) (pin intents.Pin, ok bool, err error) {
	if t != nil && t.Remote != nil && t.Remote.Skill == name {
		return *t.Remote, true, nil
	}
	return d.SkillNamed(tenant, name)
}

// SkillOf is Directory.SkillOf on the directory in force.
func (v *View) SkillOf(t *Task, tenant, name string) (pin intents.Pin, ok bool, err error) {
	return v.directory(tenant).SkillOf(t, tenant, name)
}
