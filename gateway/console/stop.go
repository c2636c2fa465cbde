package console

import (
	"slices"
	"strings"

	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// stopPage is what can be stopped, and what somebody has chosen to stop. What stands is on every page.
type stopPage struct {
	May             bool
	Agents, Servers []string // that can be stopped by name
	Chosen          catalog.AdminStop
	What            string // is chosen, in words
	Confirm         bool   // it stops when this is sent
	Wrong           string
}

func (p stopPage) Agent(name string) bool  { return slices.Contains(p.Chosen.Agents, name) }
func (p stopPage) Server(name string) bool { return slices.Contains(p.Chosen.Servers, name) }

const (
	stopPath = "/console/stop"
	stopAPI  = "/v1/stop"
)

func (*Console) showStop(q *request) (any, error) {
	var p stopPage
	err := q.stoppable(&p)
	return p, err
}

// stoppable finds what the tenant has that can be stopped.
func (q *request) stoppable(p *stopPage) error {
	if p.May = q.may(catalog.CapabilityStop) == nil; !p.May {
		return nil
	}
	var all gateway.Deep
	if err := q.get("/health/deep", &all); err != nil {
		return err
	}
	for _, a := range all.Agents {
		p.Agents = append(p.Agents, a.Name)
	}
	var err error
	p.Servers, err = q.servers()
	return err
}

// stop first shows what will stop, and stops it when that is confirmed. It lets everything go on
// where the form says so.
func (c *Console) stop(q *request) (any, error) {
	switch q.PostFormValue("do") {
	case "resume":
		if err := q.post(stopAPI, catalog.AdminStop{Resume: true}, nil); err != nil {
			return nil, err
		}
		return q.see(stopPath, "Everything goes on.")
	case "ask", "stop":
	default:
		return nil, problem.New(intents.SchemaInvalid, "/do", "say ask, stop or resume")
	}
	p := stopPage{Chosen: catalog.AdminStop{
		All: q.PostFormValue("all") != "", Agents: q.PostForm["agent"], Servers: q.PostForm["server"], Reason: strings.TrimSpace(q.PostFormValue("reason")),
	}}
	if stops := (catalog.Stopped{}).Add(p.Chosen, catalog.Stop{}).Stops(); len(stops) > 0 {
		p.What = stops[0].What
	}
	switch {
	case p.What == "":
		p.Wrong = "Choose what to stop."
	case p.Chosen.Reason == "":
		p.Wrong = "Say why: everybody who is refused reads it."
	case q.PostFormValue("do") == "stop":
		if err := q.post(stopAPI, p.Chosen, nil); err != nil {
			return nil, err
		}
		return q.see(stopPath, "You stopped "+p.What+".")
	default:
		p.Confirm = true
		return p, nil
	}
	if err := q.stoppable(&p); err != nil {
		return nil, err
	}
	c.render(q.w, q.Request, intents.SchemaInvalid.Info().Status, "stop", q.s, p)
	return nil, errDone
}
