package agents

import "aob.dev/writ/intents/catalog"

// Decide determines which of the agents that are routed to gets a request, and why, from the
// classifier's result. clarify: the user may be asked; then the request goes to no agent yet.
// open reports whether an agent's breaker is open. There is no decision if no agent is
// available, not even the default.
//
// Driver, router and auditors decide with it on the same registry.
func Decide(rules map[string]RoutingRule, open func(agent string) bool, said catalog.Route, clarify bool) (agent, decision string) {
	standard := ""
	for name, g := range rules {
		if g.Default && !open(name) {
			standard = name
		}
	}
	g, known := rules[said.Agent]
	switch {
	case !known:
		decision = catalog.RouteUnknown
	case g.Default:
		decision = catalog.RouteDirect
	case open(said.Agent):
		decision = catalog.RouteBreaker
	case said.Confidence >= g.Threshold && g.Threshold < 1 && !said.Ambiguous:
		return said.Agent, catalog.RouteConfident
	case g.Clarify && clarify:
		return "", catalog.RouteClarify
	default:
		decision = catalog.RouteDefault
	}
	if standard == "" {
		return "", ""
	}
	return standard, decision
}
