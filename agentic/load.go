package agentic

import (
	"context"
	"errors"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// load loads the manifest of a skill. All tasks of the step seal one order for it, so that
// people who have to approve it are asked once. One that failed by itself is followed by another:
// the skill's server may be back.
func (w *worker) load(ctx context.Context, skill string, m *catalog.Manifest) error {
	at := w.at
	for at.Equal = 1; ; at.Equal++ {
		a, err := w.sealer.Order(ctx, w.req.Turn, at, "skill.load", catalog.SkillLoad{Skill: skill}, m)
		var refused *OrderError
		if !errors.As(err, &refused) || !a.Replayed || a.Code == intents.ApprovalRejected || a.Code == intents.ApprovalExpired {
			return err
		}
	}
}
