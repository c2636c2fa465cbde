// Package state is the state that results from the journal's records: keys, directory data,
// plans, tasks, holds, open and indeterminate intents. It is pure: records are its only input,
// and it uses no clock, file or network.
//
// Every intent that the router executes itself is one Transition, in a file of its own: judge
// decides whether the intent is legal on the current state, apply is its effect. The router
// judges new intents by the transitions, an auditor judges recorded ones, and projections read
// the same state.
package state
