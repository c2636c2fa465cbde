package intents

import (
	"fmt"
	"time"
)

// Rules numbers the rules by which the router's own code judges orders. A verdict
// that changes gets a new number, and a control record `{rules: n}` puts it in
// force: what was decided under earlier rules is judged by them for good, so that
// old logs go on replaying.
//
// Policies and catalogs need no number: a decision names them by digest.
type Rules int

const (
	// RulesFirst are those of logs that say nothing.
	RulesFirst Rules = 1
	// RulesStrict judge tenant data by schemas, cut roles to what the directory
	// allows now, take for approvers whose roles give it and not who has a role of
	// that name, and refuse what earlier rules let pass.
	RulesStrict Rules = 2
	// RulesTimed ask for ids of plans and tasks that carry their time, and let closed
	// plans leave the state.
	RulesTimed Rules = 3
	// RulesAgents know agents, their registry and sessions, let steps of a plan run side
	// by side, and let an interrupted step go on.
	RulesAgents Rules = 4
	// RulesAsks let agents ask others, hold the once orders of a skill while the outcome of one is
	// not known, and know breakers.
	RulesAsks Rules = 5
	// RulesWorkflows let people define runs, edit held orders, and agents ask people.
	RulesWorkflows Rules = 6
	// RulesMoves let tenants move from one log to another.
	RulesMoves Rules = 7

	// CurrentRules are the newest that this build knows. A log is put under them
	// when a router starts.
	CurrentRules = RulesMoves
)

// After gives the rules in force once a record says next: 0 is a record that says
// nothing. Rules only increase, and a build that does not know them cannot judge.
func (r Rules) After(next Rules) (Rules, error) {
	switch {
	case next == 0:
		return max(r, RulesFirst), nil
	case next < r || next < RulesFirst:
		return r, fmt.Errorf("rules %d after rules %d: rules only increase", next, r)
	case next > CurrentRules:
		return r, fmt.Errorf("rules %d: this build knows rules up to %d; use the build that wrote them or a newer one", next, CurrentRules)
	default:
		return next, nil
	}
}

// RevokedBefore is the time before which issued grants are dead, once those before
// another are revoked. A gateway's clock may be ahead by the leeway, so a grant
// that was issued before the revocation may say that it was later; iat is whole
// seconds.
func (r Rules) RevokedBefore(before time.Time) time.Time {
	if r < RulesStrict {
		return before
	}
	return before.Add(Leeway + time.Nanosecond)
}
