package state

import (
	"fmt"

	"aob.dev/writ/intents/catalog"
)

// policyPush puts a policy in force for all tenants. It takes effect at its own position: from
// there on no decision by another policy commits. Before the commit it is checked that the
// bundle is the policy of that digest, and compiles.
var policyPush = operators(TypePolicyPush,
	func(v *View, _ Intent, a catalog.PolicyPush) (Effect, error) {
		if a.Revision <= v.s.policy.Revision {
			return Effect{}, illegal("/intent/args/revision", fmt.Sprintf("revision %d was in force already: only a higher one replaces it", v.s.policy.Revision))
		}
		return v.addWritesToReads(accepted(SubjectPolicy))
	},
	func(s *State, _ Intent, a catalog.PolicyPush) error {
		s.policy = policy{a.Digest, a.Revision, &PushedPolicy{a.Revision, a.Digest, a.Bundle}}
		return nil
	})

// PushedPolicy is the policy that the last policy.push put in force.
type PushedPolicy struct {
	Revision int64
	Digest   string
	Bundle   string // base64
}

// applyPolicy applies a control record about a policy that was loaded, not pushed. The highest
// revision is retained: an older one is never accepted again.
func (s *State) applyPolicy(digest string, revision int64) {
	s.policy = policy{digest, max(s.policy.Revision, revision), nil}
}

// PolicyPushed is the policy in force if it was pushed, else nil, and the highest revision that
// was ever in force.
func (s *State) PolicyPushed() (p *PushedPolicy, revision int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.policy.PushedPolicy, s.policy.Revision
}
