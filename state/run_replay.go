package state

import "aob.dev/writ/intents/catalog"

// runReplay opens a plan that repeats a run.
var runReplay = move(TypeRunReplay,
	func(*View, Order, catalog.RunReplay) (Effect, error) {
		return Effect{}, illegal("/intent/args/mode", "not yet")
	},
	func(*State, Order, catalog.RunReplay) error { return nil })
