package catalog

import "maps"

// Routing are the settings of request routing that a plan is opened with: one agent of the registry is
// chosen for its request. plan.open has them, so that all decide by the same.
type Routing struct {
	EntryPoint string `json:"entry_point,omitempty"` // where the request comes from, such as ui
	// Bypass: a session that is active goes to its agent. Clarify: an agent may ask the user
	// which request is intended.
	Bypass  bool `json:"bypass"`
	Clarify bool `json:"clarify"`
	// TTLMinutes a session is active without a turn.
	TTLMinutes int `json:"ttl_minutes"`
}

// MaxSessionTTL is the longest that a session is active without a turn, in minutes: for as
// long as a closed plan stays in the state.
const MaxSessionTTL = 48 * 60

// Decisions of request routing: why a request goes to its agent.
const (
	RouteBypass    = "bypass"    // the session is active: to its agent
	RouteUnknown   = "unknown"   // no such agent, or none that the user may run: to the default
	RouteBreaker   = "breaker"   // the agent's breaker is open: to the default
	RouteDirect    = "direct"    // the default was named: to it
	RouteConfident = "confident" // the threshold is reached, and nothing is ambiguous: to the agent
	RouteClarify   = "clarify"   // the user is asked
	RouteDefault   = "default"   // none of these: to the default
)

// Route is the classifier's result for a request, and the routing decision.
type Route struct {
	Agent         string            `json:"agent"` // that the classifier names, or that the session has
	Confidence    float64           `json:"confidence,omitempty"`
	Ambiguous     bool              `json:"ambiguous,omitempty"`
	IntentSummary string            `json:"intent_summary,omitempty"`
	Entities      map[string]string `json:"entities,omitempty"`
	Language      string            `json:"language,omitempty"`
	Decision      string            `json:"decision"`
}

// WithTexts is a route with the texts of another; nil stays nil.
func (r *Route) WithTexts(from Route) *Route {
	if r == nil {
		return nil
	}
	out := *r
	out.IntentSummary, out.Entities = from.IntentSummary, maps.Clone(from.Entities)
	return &out
}

// RoutingContext is the context of the driver of a plan that was opened for routing.
type RoutingContext struct {
	Clarify bool          `json:"clarify"` // the user may be asked which request is intended
	Before  *PriorRequest `json:"before,omitempty"`
}

// PriorRequest is the request before, which the user was asked about: the plan that has its
// text, and the agent that it may be for.
type PriorRequest struct {
	PlanID string `json:"plan_id"`
	Agent  string `json:"agent"`
}

// RoutingTerms is what request routing knows of an agent beside its description.
type RoutingTerms struct {
	Default   bool     `json:"is_default"`
	Threshold float64  `json:"confidence_threshold"`
	Clarify   bool     `json:"clarification_required,omitempty"`
	About     string   `json:"clarification_context,omitempty"`
	Examples  []string `json:"examples,omitempty"`
	Open      bool     `json:"breaker_open,omitempty"`
}
