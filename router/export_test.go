package router

import (
	"context"
	"fmt"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// Quiet waits until no intent is being executed in the background.
func (r *Router) Quiet() { r.running.Wait() }

// EngineOn is the policy over the data of a tenant that a view sees.
func (r *Router) EngineOn(ctx context.Context, v *state.View, tenant string) (*policies.Engine, error) {
	return r.engine(ctx, v, tenant)
}

// ConvertBy has a function convert the data of a tenant that a view sees.
func (r *Router) ConvertBy(tenant string, v *state.View, convert func() (*policies.Engine, error)) {
	d := v.Directory()
	r.engines.put(tenant, &tenantEngine{r.cfg.Policy.Engine(), d.Tenant(tenant), d.At(), sync.OnceValues(convert)})
}

// ManyDifferences are those of as many tenants.
func ManyDifferences(n int) *Shadow {
	s := new(Shadow)
	for i := range n {
		x := ShadowDifference{Tenant: fmt.Sprintf("t%d", i), Before: ShadowDecision{Verdict: intents.Allow}, After: ShadowDecision{Verdict: intents.Deny}}
		addDifference(s, x, "rule")
	}
	return s
}
