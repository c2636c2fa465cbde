package node

import (
	"context"
	"log/slog"
	"reflect"

	"aob.dev/writ/executors/skills"
	"aob.dev/writ/internal/datadir"
)

// writeVersions writes down what is declared now, and keeps what is approved beside it, so
// that somebody can see what has changed. A crash leaves the file as it was; where
// it cannot be written, that is said and nothing else is the worse.
func (k *skillKeeper) writeVersions(ctx context.Context, found []skills.Skill) {
	dir, log := k.node.cfg.Dir, k.node.cfg.Log
	list, seen := []datadir.SkillVersion{}, map[string]bool{}
	for _, s := range found {
		if d := s.Digest(); s.Err == nil && d != "" && !seen[d] {
			seen[d] = true
			list = append(list, datadir.SkillVersion{
				Name: s.Name, Server: k.titles[s.Server], Digest: d, Effect: k.effectOf(s), Declared: true,
				Description: s.Description, InputSchema: s.InputSchema, OutputSchema: s.OutputSchema, Annotations: s.Annotations,
			})
		}
	}
	before, err := datadir.ReadSkillVersions(dir)
	if err != nil {
		log.WarnContext(ctx, "the skills that were declared before cannot be read", slog.String("error", err.Error()))
	}
	approved := k.approvedDigests()
	for _, s := range before {
		if approved[s.Digest] && !seen[s.Digest] {
			s.Declared = false
			list = append(list, s)
		}
	}
	if reflect.DeepEqual(list, k.noted) {
		return
	}
	if err := datadir.WriteSkillVersions(dir, list); err != nil {
		log.WarnContext(ctx, "the skills that are declared were not written down", slog.String("error", err.Error()))
		return
	}
	k.noted = list
}

// approvedDigests of all tenants.
func (k *skillKeeper) approvedDigests() map[string]bool {
	out := map[string]bool{}
	v := k.node.directory.View()
	for _, tenant := range k.node.directory.Tenants() {
		for _, pin := range v.Pins(tenant) {
			out[pin.Digest] = true
		}
	}
	return out
}
