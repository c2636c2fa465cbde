package agentic

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// loadSkills loads skills, as many as that at once. A skill that cannot be loaded is left out: its
// server may be down.
func loadSkills(ctx context.Context, submit func(ctx context.Context, typ string, args, result any) error, log *slog.Logger, names []string, atOnce int) (out []catalog.Manifest, err error) {
	for some := range slices.Chunk(names, atOnce) {
		loaded, err := loadSome(ctx, submit, log, some)
		if err != nil {
			return nil, err
		}
		out = append(out, loaded...)
	}
	return out, nil
}

// loadSome loads a batch of skills. If the router refuses it because of a skill in it, each half
// is asked for by itself. Any other failure is that of all skills: asking for fewer would not help.
func loadSome(ctx context.Context, submit func(ctx context.Context, typ string, args, result any) error, log *slog.Logger, names []string) (out []catalog.Manifest, err error) {
	args := catalog.SkillLoad{Skills: names}
	if len(names) == 1 {
		args = catalog.SkillLoad{Skill: names[0]}
	}
	var got catalog.SkillLoadResult
	err = submit(ctx, "skill.load", args, &got)
	if part := fewer(err, len(names)); part > 0 {
		return loadSkills(ctx, submit, log, names, part)
	}
	switch {
	case refusedTellably(err):
		got.Unavailable = []string{strings.Join(names, ", ") + ": " + err.Error()}
	case err != nil:
		return nil, err
	}
	if got.Manifest != nil { // the reply to a single name
		got.Skills = append(got.Skills, *got.Manifest)
	}
	if len(got.Unavailable) > 0 {
		log.WarnContext(ctx, "skills cannot be loaded", slog.Any("skills", got.Unavailable))
	}
	return slices.DeleteFunc(got.Skills, func(m catalog.Manifest) bool { return m.Tool() == catalog.ReadSkill }), nil
}

// fewer returns how many of n skills are to be asked for at once after a refusal; 0: to ask for
// fewer does not help, since the executor has answered for each, or the machine is unavailable,
// overloaded or late. What waits for people is asked for one by one, so that they read each once.
func fewer(err error, n int) int {
	var refused *IntentError
	if !errors.As(err, &refused) || refused.Answer.Outcome != nil || n == 1 {
		return 0
	}
	switch refused.Answer.Code {
	case intents.ApprovalRequired:
		return 1
	case intents.SchemaInvalid, intents.TaskScope, intents.RBACForbidden, intents.PolicyDenied:
		return (n + 1) / 2
	default:
		return 0
	}
}

// refusedTellably reports whether an intent was refused or failed because of its content.
func refusedTellably(err error) bool {
	refused, ok := errors.AsType[*IntentError](err)
	return ok && reportable(refused.Answer.Code)
}
