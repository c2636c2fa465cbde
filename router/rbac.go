package router

import (
	"context"
	"slices"
)

// rbac is stage 6 (state.Directory.Permits).
func (r *Router) rbac(_ context.Context, o *order) (err error) {
	if o.roles, err = o.view.Permits(o.env, o.row.Capability, o.released); err != nil {
		return err
	}
	o.facts.Roles = slices.Clone(o.roles)
	return nil
}
