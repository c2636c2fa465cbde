package state

import "aob.dev/writ/intents/catalog"

// auditRead is recorded, and changes nothing: that it is on record is its effect.
var auditRead = newTransition(catalog.TypeAuditRead,
	func(_ *View, _ Intent, a catalog.AuditRead) (Effect, error) { return Effect{Result: a}, nil },
	func(*State, Intent, catalog.AuditRead) error { return nil })
