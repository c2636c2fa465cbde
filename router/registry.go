package router

import (
	"encoding/json"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// readRegistry computes the scopes of a pushed registry from its content, for the record:
// state and auditors judge by them. Only operators' keys come here, and a bundle is
// bounded.
func (o *order) readRegistry(so *state.Order) error {
	a, err := argsOf[catalog.RegistryPush](o.env)
	if err != nil || a.Bundle == "" {
		return err
	}
	if so.Scopes, err = state.ScopesOf(o.view.Rules(), a); err != nil {
		return err
	}
	o.facts.Scopes, err = json.Marshal(so.Scopes)
	return err
}
