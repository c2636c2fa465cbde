package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents/catalog"
)

// openSkills registers the skill servers; they are dialled when first asked.
func (n *Node) openSkills(ctx context.Context) error {
	n.registry = skills.NewRegistry(ctx, n.cfg.Now)
	for i, s := range n.cfg.Skills {
		source, err := mcp.ParseSource(s)
		if err != nil {
			return err
		}
		err = n.registry.Add(fmt.Sprintf("skills-%d", i+1), func(ctx context.Context) (skills.Server, error) {
			c, err := mcp.Dial(ctx, source, mcp.Options{Log: n.cfg.Log})
			if err != nil {
				return nil, err // not c, which as a Server would be no nil
			}
			return c, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// startWait is how long a new skill server may take to answer: one that npx has
// to download first does. returnWait is the same where an approved skill is
// missing.
const (
	startWait  = time.Minute
	returnWait = 15 * time.Second
)

// checkSkills refuses a skill server that does not answer while it is new:
// most likely it is misspelt or was not started. Where an approved skill is
// missing, the server may be the one that had it, and must not keep everything
// else from running for long: approveSkills reports it.
func (n *Node) checkSkills(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		found, err := n.registry.Skills(ctx)
		if twice := servedTwice(found); twice != nil {
			return twice
		}
		slow := errors.Is(err, context.DeadlineExceeded)
		if err == nil || n.missing(found) && (!slow || time.Since(began) > returnWait) {
			return nil
		}
		if !slow || ctx.Err() != nil {
			return fmt.Errorf("%w: start it, correct --skills, or leave it out", err)
		}
	}
}

// servedTwice refuses a skill that two servers offer: a pin names the manifest
// and not the server, so one that copies another's manifest would get its calls.
func servedTwice(found []skills.Skill) error {
	by := make(map[string]string, len(found))
	for _, s := range found {
		if other, ok := by[s.Name]; ok && other != s.Server {
			return fmt.Errorf("skill %q is offered by two skill servers: leave one of them out of --skills", s.Name)
		}
		by[s.Name] = s.Server
	}
	return nil
}

// missing says whether an approved skill is not among those found.
func (n *Node) missing(found []skills.Skill) bool {
	there := make(map[string]bool, len(found))
	for _, s := range found {
		there[s.Name] = true
	}
	for _, pin := range n.directory.View().Pins("default") {
		if !there[pin.Skill] {
			return true
		}
	}
	return false
}

// approveSkills pins the manifests that the skill servers of the command line
// show for the first time: naming a server to `writ up` is the operator's word
// for it. A manifest that changed since is another version and waits for
// skill.approve (DESIGN §9). A server that is down is reported and asked again
// when it is used.
func (n *Node) approveSkills(ctx context.Context) error {
	if len(n.cfg.Skills) == 0 {
		return nil
	}
	found, err := n.registry.Skills(ctx)
	if err != nil {
		n.cfg.Log.WarnContext(ctx, "a skill server does not answer; its skills are not there until it does: start it and restart writ", slog.String("error", err.Error()))
	}
	for _, s := range found {
		if s.Err != nil {
			n.cfg.Log.WarnContext(ctx, "skill left out", slog.String("skill", s.Name), slog.String("server", s.Server), slog.String("error", s.Err.Error()))
			continue
		}
		digest := s.Digest()
		pin, pinned := n.directory.View().Pin("default", s.Name)
		switch {
		case pinned && pin.Digest == digest:
		case pinned:
			n.cfg.Log.WarnContext(ctx, "skill has changed and is refused until it is approved again", slog.String("skill", s.Name), slog.String("digest", digest))
		default:
			if err := n.operator(ctx, "skill.approve", catalog.SkillApprove{Tenant: "default", Skill: s.Name, Digest: digest, Effect: effectOf(s.ReadOnlyHint, s.IdempotentHint)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// effectOf takes a server's hints at their word, because the operator named the
// server; what they leave unsaid is once.
func effectOf(readOnly, idempotent *bool) catalog.Effect {
	switch {
	case readOnly != nil && *readOnly:
		return catalog.Pure
	case idempotent != nil && *idempotent:
		return catalog.Idempotent
	default:
		return catalog.Once
	}
}
