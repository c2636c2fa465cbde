package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TypeAdminStop is the type of an emergency stop and of its end.
const TypeAdminStop = "admin.stop"

// AdminStop are the arguments of admin.stop: what stops in a tenant, or that everything goes on.
// Tenant may be named by operators of system only; others act on their own.
type AdminStop struct {
	Tenant  string   `json:"tenant,omitempty"`
	All     bool     `json:"all,omitempty"`
	Agents  []string `json:"agents,omitempty"`
	Servers []string `json:"servers,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Resume  bool     `json:"resume,omitempty"`
}

// Stopped is what has been stopped in a tenant: its data KeyStop.
type Stopped struct {
	All     *Stop           `json:"all,omitempty"` // nil: not everything
	Agents  map[string]Stop `json:"agents,omitempty"`
	Servers map[string]Stop `json:"servers,omitempty"`
}

// KeyStop is the key of tenant data that only admin.stop changes.
const KeyStop = "stop"

// MaxStopped bounds the agents, and the servers, that are stopped by name.
const MaxStopped = 256

// Stop is who has stopped something, when and why.
type Stop struct {
	User   string `json:"user_id"`
	Tenant string `json:"tenant_id"`
	Key    string `json:"key,omitempty"` // id of the API key that named the user, or the CallerByToken
	Since  string `json:"since"`
	Reason string `json:"reason,omitempty"`
}

// By is the name of the operator.
func (s Stop) By() string {
	if s.Tenant == "system" {
		return s.User + " (operator of system)"
	}
	return s.User
}

// Add adds what an intent stops. What is stopped already stays with the first who stopped it.
func (s Stopped) Add(a AdminStop, by Stop) Stopped {
	if a.All && s.All == nil {
		s.All = &by
	}
	s.Agents, s.Servers = add(s.Agents, a.Agents, by), add(s.Servers, a.Servers, by)
	return s
}

func add(to map[string]Stop, names []string, by Stop) map[string]Stop {
	if len(names) == 0 {
		return to
	}
	to = maps.Clone(to)
	if to == nil {
		to = make(map[string]Stop)
	}
	for _, name := range names {
		if _, there := to[name]; !there {
			to[name] = by
		}
	}
	return to
}

// Stops lists each stop that stands with what it stopped, in words, the oldest first.
func (s Stopped) Stops() (list []StopOf) {
	what := map[Stop][]string{}
	if s.All != nil {
		what[*s.All] = []string{"everything"}
	}
	for kind, names := range map[string]map[string]Stop{"agent": s.Agents, "server": s.Servers} {
		for name, by := range names {
			what[by] = append(what[by], kind+" "+name)
		}
	}
	for by, of := range what {
		slices.Sort(of)
		list = append(list, StopOf{by, strings.Join(of, ", ")})
	}
	slices.SortFunc(list, func(a, b StopOf) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.What, b.What)) })
	return list
}

// StopOf is a stop with what it stopped.
type StopOf struct {
	Stop
	What string `json:"what"`
}

func (s StopOf) String() string {
	text := fmt.Sprintf("%s stopped %s at %s", s.By(), s.What, s.Since)
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}
