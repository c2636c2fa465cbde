package state

import (
	"fmt"

	"aob.dev/writ/intents/catalog"
)

// policyPush puts a policy in force for all tenants. Its effect is at its own
// position: from there on no decision commits that another policy made. That the
// bundle is the policy of that digest, and compiles, is shown before it is committed.
var policyPush = operators(TypePolicyPush,
	func(v *View, _ Order, a catalog.PolicyPush) (Effect, error) {
		if a.Revision <= v.s.policy.Revision {
			return Effect{}, illegal("/intent/args/revision", fmt.Sprintf("revision %d was in force already: only a higher one replaces it", v.s.policy.Revision))
		}
		return v.relyOn(accepted(SubjectPolicy))
	},
	func(s *State, _ Order, a catalog.PolicyPush) error {
		s.policy = policy{a.Digest, a.Revision, &Pushed{a.Revision, a.Digest, a.Bundle}}
		return nil
	})

// Pushed is the policy that the last policy.push put in force.
type Pushed struct {
	Revision int64
	Digest   string
	Bundle   string // base64
}

// foldPolicy applies a control record about a policy that was loaded, not pushed. The
// highest revision stays: an older one is never accepted again.
func (s *State) foldPolicy(digest string, revision int64) {
	s.policy = policy{digest, max(s.policy.Revision, revision), nil}
}

// PolicyPushed is the policy in force if it was pushed, else nil, and the highest
// revision that was ever in force.
func (s *State) PolicyPushed() (p *Pushed, revision int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.policy.Pushed, s.policy.Revision
}
