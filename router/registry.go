package router

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// readRegistry computes the scopes of a pushed registry from its content, for the record:
// state and auditors judge by them. Only operators' keys come here, and the content is
// bounded. Whoever pushes has kept content that is no part of the order before it was sealed.
//
// Crash before the commit: blobs of tenant system that no record names. They stay, and the
// same push finds them.
func (r *Router) readRegistry(ctx context.Context, o *order, so *state.Order) error {
	a, err := argsOf[catalog.RegistryPush](o.env)
	if err != nil || a.Bundle == "" && o.view.ComesBack(state.Named(so.Tenant, a.Tenant), a.Digest) {
		return err
	}
	if so.Scopes, err = state.ScopesOf(o.view.Rules(), a, r.systemBlob(ctx)); errors.Is(err, storage.ErrNotFound) {
		return nil // the state refuses it
	} else if err != nil {
		return err
	}
	o.facts.Scopes, err = json.Marshal(so.Scopes)
	return err
}

// systemBlob reads blobs of tenant system.
func (r *Router) systemBlob(ctx context.Context) func(digest string) ([]byte, error) {
	return func(digest string) ([]byte, error) {
		return storage.ReadSystem(ctx, r.cfg.Blobs, digest)
	}
}

// located is a pin with the endpoint of its remote agent, which the state does not have of a
// registry whose content is a blob.
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
		return pin, err // it was sound when it was pushed
	}
	pin.Server = a.Endpoint
	return pin, nil
}

// readAgents reads what the state does not have of the agents that an agent.get is answered with.
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
			return err // it was sound when it was pushed
		}
		got.Others[i].DisplayName, got.Others[i].Description = a.DisplayName, a.Description
	}
	e.Result = got
	return nil
}
