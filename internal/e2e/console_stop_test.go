package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// pondering is a model that answers nothing until its request is cancelled.
type pondering struct{ asked, cancelled chan struct{} }

func (pondering) Name() string { return "test:pondering" }

func (m pondering) Respond(ctx context.Context, _ model.Request, _ func(model.Event)) (*model.Response, error) {
	m.asked <- struct{}{}
	<-ctx.Done()
	m.cancelled <- struct{}{}
	return nil, &model.Error{Reason: "cancelled"}
}

// TestConsoleStop: an operator of the tenant stops everything in the console, once it is confirmed. The
// request to a model ends within two seconds, every page and every refusal says who stopped it and why,
// and a second person lets it go on.
func TestConsoleStop(t *testing.T) {
	t.Parallel()
	m := pondering{make(chan struct{}, 9), make(chan struct{}, 9)}
	s := start(t, setup{Model: m})
	boss, eve, ana := s.addPerson("default", "boss", "user", "admin"), s.addPerson("default", "eve", "user", "admin"), s.addPerson("default", "ana", "user")
	ended := make(chan problem, 1)
	go func() {
		_, p := s.call(ana, http.MethodPost, "/agent/run", map[string]string{"message": "Think."}, nil)
		ended <- p
	}()
	<-m.asked

	b, a := s.at(boss), s.at(ana)
	a.open("/console/stop").shows(t, "Nothing is stopped.", "admin:stop")
	p := b.open("/console/stop")
	p.shows(t, "Everything of tenant default", "The agent general")
	form := url.Values{"csrf": {p.csrf()}, "do": {"ask"}, "reason": {"a leak"}}
	if p := b.send("/console/stop", form); p.status != intents.SchemaInvalid.Info().Status || !strings.Contains(p.text, "Choose what to stop.") || !strings.Contains(p.text, `value="a leak"`) {
		t.Errorf("nothing chosen: HTTP %d\n%s", p.status, p.text)
	}
	form.Set("all", "yes")
	b.send("/console/stop", form).shows(t, "Stop everything?", "a leak", "Stop it now")
	if len(s.stops()) > 0 {
		t.Error("it is stopped before it is confirmed")
	}
	if p := a.send("/console/stop", url.Values{"csrf": {a.open("/console/now").csrf()}, "do": {"stop"}, "all": {"yes"}, "reason": {"mine"}}); p.status != http.StatusForbidden {
		t.Errorf("without admin:stop: HTTP %d", p.status)
	}
	form.Set("do", "stop")
	began := time.Now()
	b.send("/console/stop", form).shows(t, "You stopped everything.", "boss stopped everything", "a leak", "Let it go on")
	<-m.cancelled
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the model goes on for %s", took)
	}
	if p := <-ended; p.Code != "" && p.Code != intents.PolicyDenied {
		t.Errorf("%+v", p)
	}
	for _, path := range consolePages {
		a.open(path).shows(t, "boss stopped everything", ": a leak")
	}
	if _, p := s.call(ana, http.MethodPost, "/agent/run", map[string]string{"message": "Think again."}, nil); p.Code != intents.PolicyDenied || !strings.Contains(p.Detail, "boss stopped everything at ") || !strings.Contains(p.Detail, ": a leak") {
		t.Errorf("%+v", p)
	}

	resume := url.Values{"csrf": {form.Get("csrf")}, "do": {"resume"}}
	if p := b.send("/console/stop", resume); p.status != intents.MalformedArgs.Info().Status || !strings.Contains(p.text, "a second person must") {
		t.Errorf("alone: HTTP %d\n%s", p.status, p.text)
	}
	e := s.at(eve)
	resume.Set("csrf", e.open("/console/stop").csrf())
	e.send("/console/stop", resume).shows(t, "Everything goes on.", "Nothing is stopped.")
	var closed []string
	for _, o := range s.intents("") {
		if o.Type == "plan.close" && o.Outcome != nil {
			closed = append(closed, string(o.Args))
		}
	}
	if len(closed) != 1 || !strings.Contains(closed[0], "boss stopped everything") {
		t.Errorf("closed: %v", closed)
	}
}

// stops are the intents that have stopped something, or let it go on.
func (s *system) stops() (list []intent) {
	for _, o := range s.intents("") {
		if o.Type == catalog.TypeAdminStop {
			list = append(list, o)
		}
	}
	return list
}

// TestConsoleYou: people see who they are here and where that is changed, and come to their connections.
func TestConsoleYou(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	owner := s.addPerson("default", "ben", "user", "approver")
	if _, _, text := s.knock(owner, http.MethodGet, "/v1/apikeys", nil); text != `{"api_keys":[{"id":"default-ben","user_id":"ben","max_roles":["user","approver"]}]}` {
		t.Errorf("own keys: %s", text)
	}
	ben := s.at(owner)
	p := ben.open("/console/you")
	p.shows(t, "ben of default", "approver", "with an API key", "Your connection to skills-1", "writ user put", "default-ben")
	p = ben.send("/console/you/connect", url.Values{"csrf": {p.csrf()}, "server": {"skills-1"}})
	if p.status == http.StatusOK || !strings.Contains(p.text, "What to do next") {
		t.Errorf("a server that asks nobody who they are: HTTP %d\n%s", p.status, p.text)
	}
}
