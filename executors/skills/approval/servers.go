package approval

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills"
)

// Server is a skill server as the default tenant has it, or the first of its own.
type Server struct {
	Title        string
	Tools        int
	Usable       int
	NeedApproval int    // usable tools whose calls people approve one by one
	Others       []Tool // tools that cannot be used
	Err          error  // it does not answer
}

// Tool is a tool that cannot be used, and why.
type Tool struct{ Tool, Why string }

// errNotYet stands for a server that has not answered within the time of a listing.
var errNotYet = errors.New("it has not answered yet")

// Servers returns the skill servers as of their last listing, by title.
func (w *Watcher) Servers() []Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.servers)
}

// summarize stores the result of Servers.
func (w *Watcher) summarize(found []skills.Skill) {
	var list []Server
	for _, h := range w.Registry.Health() {
		s := Server{Title: w.title(h.Name), Err: h.Err}
		tenant := "default"
		if of := w.tenantsOf(h.Name); len(of) > 0 {
			tenant = of[0]
		}
		held := w.ruleOf(tenant)
		if errors.Is(h.Err, context.DeadlineExceeded) {
			s.Err = errNotYet
		}
		for _, x := range found {
			if x.Server != h.Name {
				continue
			}
			s.Tools++
			pin, pinned := w.pinOf(x, tenant)
			why := ""
			switch {
			case errors.Is(x.Err, mcp.ErrNotOffered):
				why = strings.TrimPrefix(x.Err.Error(), x.Name+": ")
			case x.Err != nil:
				why = "its description cannot be used"
			case !pinned:
				why = "not approved"
			case pin.Digest == x.Digest():
			case pin.Server != "" && pin.Server != w.pinTitle(x):
				why = "approved for another server"
			default:
				why = "changed since it was approved"
			}
			if why != "" {
				s.Others = append(s.Others, Tool{x.Name, why})
				continue
			}
			s.Usable++
			if held.holds(pin) {
				s.NeedApproval++
			}
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Server) int { return cmp.Compare(a.Title, b.Title) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = list
}
