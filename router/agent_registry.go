package router

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

// readRegistry computes the scopes of a pushed registry from its content and adds them to the
// record; state and auditors judge by them. Only operators' keys reach it, and the content is
// bounded. The submitter stores content that is not part of the intent before it signs.
//
// Crash before the commit: blobs of tenant system that no record names remain; the same push finds
// them.
func (r *Router) readRegistry(ctx context.Context, d *decision, so *state.Intent) error {
	a, err := argsOf[catalog.RegistryPush](d.env)
	if err != nil || a.Bundle == "" && d.view.ComesBack(state.TargetTenant(so.Tenant, a.Tenant), a.Digest) {
		return err
	}
	if so.Scopes, err = state.ScopesOf(a, r.systemBlob(ctx)); errors.Is(err, storage.ErrNotFound) {
		return nil // the state refuses it
	} else if err != nil {
		return err
	}
	d.inputs.Scopes, err = json.Marshal(so.Scopes)
	return err
}

// systemBlob reads blobs of tenant system.
func (r *Router) systemBlob(ctx context.Context) func(digest string) ([]byte, error) {
	return func(digest string) ([]byte, error) {
		return storage.ReadSystem(ctx, r.cfg.Blobs, digest)
	}
}

// located returns a pin with the endpoint of its remote agent. The state does not have the endpoint
// if the registry's content is a blob.
func (r *Router) located(ctx context.Context, pin intents.Pin) (intents.Pin, error) {
	if pin.Kind != intents.KindAgent || pin.Server != "" {
		return pin, nil
	}
	text, err := r.systemBlob(ctx)(pin.Digest)
	if err != nil {
		return pin, intents.Refuse(intents.DispatchUnavailable, "", "the file of the agent cannot be read")
	}
	a, err := agents.Parse(text)
	if err != nil {
		return pin, err // it was valid when it was pushed
	}
	pin.Server = a.Endpoint
	return pin, nil
}

// readAgents adds the agents' content that the state does not have to the effect of an agent.get.
func (r *Router) readAgents(ctx context.Context, e *state.Effect) error {
	got, ok := e.Result.(catalog.AgentGetResult)
	if !ok {
		return nil
	}
	read := r.systemBlob(ctx)
	if got.File != "" {
		text, err := read(got.File)
		if err != nil {
			return err
		}
		got.Text = string(text)
	}
	got.Others = slices.Clone(got.Others)
	for i, other := range got.Others {
		if other.File == "" {
			continue
		}
		text, err := read(other.File)
		if err != nil {
			return err
		}
		a, err := agents.Parse(text)
		if err != nil {
			return err // it was valid when it was pushed
		}
		got.Others[i].DisplayName, got.Others[i].Description = a.DisplayName, a.Description
	}
	e.Result = got
	return nil
}
