package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents/catalog"
)

// youPage is what the person is here, and where to change it.
type youPage struct {
	Roles   []string
	Keys    []catalog.APIKey // of the person
	Issuer  string           // at which the person has signed in; empty: by API key
	Servers []string
	Notices []string // receivers that are told of what this person may approve
}

func (c *Console) you(q *request) (any, error) {
	var me keyInfo
	if err := q.get("/v1/me", &me); err != nil {
		return nil, err
	}
	p := youPage{Roles: me.Roles}
	if q.s.person != nil {
		p.Issuer = q.s.person.Issuer
	}
	if c.Notices != nil {
		p.Notices = c.Notices(me.Tenant, me.User, me.Roles)
	}
	var own struct {
		Keys []catalog.APIKey `json:"api_keys"`
	}
	err := q.get("/v1/apikeys", &own)
	if err != nil {
		return nil, err
	}
	p.Keys = own.Keys
	p.Servers, err = q.servers()
	return p, err
}

// servers are those that the tenant's skills are of.
func (q *request) servers() (names []string, err error) {
	var skills []consoleapi.Skill
	if err := q.get(consoleapi.Path+"skills", &skills); err != nil {
		return nil, err
	}
	for _, s := range skills {
		name, _, _ := strings.Cut(s.Name, ".")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// toConnect goes to the page of the person's connection to a server.
func (*Console) toConnect(q *request) (any, error) {
	var page struct{ URL string }
	if err := q.post(connections, map[string]any{"server": q.PostFormValue("server")}, &page); err != nil {
		return nil, err
	}
	_, link, _ := strings.Cut(page.URL, catalog.ConnectPage)
	return q.see(catalog.ConnectPage+link, "")
}

// disconnect ends the person's connection to a server.
func (c *Console) disconnect(q *request) (any, error) {
	server := q.PostFormValue("server")
	if err := c.ask(q.Context(), q.s.credentials, http.MethodDelete, connections+"/"+url.PathEscape(server), nil, nil); err != nil {
		return nil, err
	}
	return q.see("/console/you", "You are not connected to "+server+" any more.")
}
