package console

import (
	"net/http"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// connectPage shows what a person connects to, or has connected to.
type connectPage struct {
	catalog.SkillConnectResult
	Done bool
}

// onward sends the browser to an address. A redirect would not do: the policy of pages forbids one of a form to
// another site, and browsers do not send the session's cookie after one from there.
type onward struct{ To string }

const connections = "/agent/connections"

func (*Console) showConnect(q *request) (any, error) {
	var p connectPage
	return &p, q.post(connections, map[string]any{"link": q.PathValue("link")}, &p)
}

// beginConnect sends the person to the authorization server.
func (c *Console) beginConnect(q *request) (any, error) {
	var p connectPage
	begin := map[string]any{"link": q.PathValue("link"), "begin": true, "absent": q.PostFormValue("absent") != ""}
	if err := q.post(connections, begin, &p); err != nil {
		return nil, err
	}
	c.sendOn(q.w, q.Request, q.s, p.AuthorizationURL)
	return nil, errDone
}

func (c *Console) sendOn(w http.ResponseWriter, r *http.Request, s *session, to string) {
	w.Header().Set("Refresh", "0; url="+to)
	c.render(w, r, http.StatusOK, "onward", s, onward{to})
}

// connected is where the authorization server sends the browser, without the session.
func (c *Console) connected(w http.ResponseWriter, r *http.Request) {
	c.sendOn(w, r, nil, c.root+catalog.ConnectReturn+"/end?"+r.URL.Query().Encode())
}

func (*Console) endConnect(q *request) (any, error) {
	from := q.URL.Query()
	if from.Get("error") != "" {
		return nil, problem.New(intents.MalformedArgs, "", "the authorization server has not agreed: "+from.Get("error"))
	}
	p := connectPage{Done: true}
	answer := map[string]any{}
	for _, name := range []string{"state", "code", "iss"} {
		if v := from.Get(name); v != "" {
			answer[name] = v
		}
	}
	return &p, q.post(connections, answer, &p)
}
