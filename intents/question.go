package intents

// Question is an intent as stage 7 judges it (policies.Engine.Judge). state.Directory.Question builds every one: where an
// intent is decided, tried, released, replayed or tried on another policy.
type Question struct {
	Envelope *Envelope
	Inputs   DecisionInputs

	// Rules of the router itself that hold the intent, and whether it may be held at all: an approval cannot wait for approvals.
	Rules    []HoldRule
	Approval bool
	// CanMeet reports whether the people of the tenant can meet a rule; nil: no check.
	CanMeet func(HoldRule) bool

	Waiting
}

// Waiting is the part of a question about people and other intents that its intent has waited for, or may have to.
type Waiting struct {
	// UnknownOutcome: the outcome of an earlier call of its skill is unknown; Hint says what to do.
	UnknownOutcome bool
	Hint           string
	// Release: people have approved the intent, as its inputs record. Its rules and deadline were decided before.
	Release bool
	// Seen are the rules that held the call whose standing approval the inputs name; nil: not known.
	Seen []string
	// Requesters are the people who requested it; they do not count as approvers.
	Requesters func() Requesters
}
