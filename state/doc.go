// Package state is what the journal's records add up to: keys, directory data,
// plans, tasks, holds, open and indeterminate orders. It is pure: records come in,
// state comes out, and no clock, file or network is asked.
//
// Every order that the router carries out itself is one Move, in a file of its own:
// Judge says whether the order is legal on the state as it is, Apply is its effect.
// The router judges new orders by the moves, an auditor recorded ones, and what
// projections show is read from the same state.
package state
