package natsserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"aob.dev/writ/bus"
)

// Member is one process of a role on a NATS cluster, with the public keys (nkeys) of its
// connections.
type Member struct {
	Role, Instance string
	Asks, Serves   string // as Connections says
}

// anyProcess is the name of a process of any role.
const anyProcess = "any_one"

// Connections returns the connections of a role: one for requests and one for serving, or one for
// both.
func Connections(role string, executors map[string][]string) (asks, serves bool, err error) {
	a, s := rightsOf(role, anyProcess, executors)
	if a == nil && s == nil {
		return false, false, fmt.Errorf("nats server: no role %q", role)
	}
	return a != nil && a != s, s != nil, nil
}

// user is a connection as written in a server's configuration.
type user struct {
	NKey        string `json:"nkey"`
	Permissions struct {
		Publish   server.SubjectPermission `json:"publish"`
		Subscribe server.SubjectPermission `json:"subscribe"`
		Answers   *responses               `json:"allow_responses,omitempty"`
	} `json:"permissions"`
}

type responses struct {
	Max     int    `json:"max"`
	Expires string `json:"expires"`
}

// only allows a list of subjects, and denies all others. A server treats an empty list as if it were
// left out, which allows everything.
func only(list []string) server.SubjectPermission {
	if len(list) == 0 {
		return server.SubjectPermission{Deny: []string{">"}}
	}
	return server.SubjectPermission{Allow: list}
}

func (r *right) member(public string) (u user, err error) {
	if !nkeys.IsValidPublicUserKey(public) {
		return u, fmt.Errorf("nats server: %q is no public user key", public)
	}
	u.NKey = public
	u.Permissions.Publish, u.Permissions.Subscribe = only(r.publish), only(r.subscribe)
	if r.answers > 0 {
		u.Permissions.Answers = &responses{max(r.replies, 1), r.answers.String()}
	}
	return u, nil
}

// Cluster returns the configuration with which a nats-server of a cluster separates accounts as
// the server in this process does: accounts with their users, the system account and the bound of
// a message. outsiders are external executors. Include it in a configuration that has the
// remaining settings.
func Cluster(executors map[string][]string, members []Member, outsiders ...External) ([]byte, error) {
	all := accounts()
	for _, m := range members {
		asks, serves := rightsOf(m.Role, m.Instance, executors)
		if asks == nil && serves == nil {
			return nil, fmt.Errorf("nats server: no role %q", m.Role)
		}
		connections := map[*right]string{}
		if asks != nil {
			connections[asks] = m.Asks
		}
		if serves != nil {
			connections[serves] = m.Serves
		}
		for r, public := range connections {
			u, err := r.member(public)
			if err != nil {
				return nil, fmt.Errorf("%w: of %s", err, bus.ProcessUser(m.Role, m.Instance))
			}
			all[r.account].Users = append(all[r.account].Users, u)
		}
	}
	for _, o := range outsiders {
		r := outside(o)
		u, err := r.member(o.NKey)
		if err != nil {
			return nil, fmt.Errorf("%w: of %s", err, o.Name)
		}
		all[r.account].Users = append(all[r.account].Users, u)
	}
	for _, a := range all {
		slices.SortFunc(a.Users, func(x, y user) int { return bytes.Compare([]byte(x.NKey), []byte(y.NKey)) })
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // subjects hold ">"
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Accounts      map[string]*account `json:"accounts"`
		SystemAccount string              `json:"system_account"`
		MaxPayload    int                 `json:"max_payload"`
	}{all, accountSystem, maxPayload})
	// An included file has no braces around it.
	body := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(text.Bytes()), []byte("{\n")), []byte("\n}"))
	return append(body, '\n'), err
}
