package agents

import "aob.dev/writ/intents/catalog"

// Decide says which agent of those that are routed to a request goes to, and why, by what
// the classifier says of it. clarify says whether the user may be asked; then the request
// goes to nobody yet. open says of an agent whether its breaker is open. No decision:
// nobody is there, since the default is not.
//
// Driver, router and auditors decide with it on the same registry.
func Decide(gates map[string]Gate, open func(agent string) bool, said catalog.Route, clarify bool) (agent, decision string) {
	standard := ""
	for name, g := range gates {
		if g.Default && !open(name) {
			standard = name
		}
	}
	g, known := gates[said.Agent]
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
