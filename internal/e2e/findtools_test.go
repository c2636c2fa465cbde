package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/e2e/testdata/crm"
)

// seeker is a model that wants the archive of one department, and looks for its tool where it is
// not shown.
type seeker struct {
	offline.Model
	department int

	mu       sync.Mutex
	requests []model.Request
}

func (s *seeker) Respond(_ context.Context, req model.Request, _ func(model.Event)) (*model.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	out := &model.Response{Model: "test:seeker"}
	want := fmt.Sprintf("archive_%d", s.department)
	said := req.Messages[len(req.Messages)-1]
	switch {
	case strings.Contains(said.Text, `"kept"`):
		out.Text = "All is kept."
	case slices.ContainsFunc(req.Tools, func(t model.Tool) bool { return t.Name == want }):
		out.Calls = []model.Call{{ID: "c2", Name: want, Arguments: `{}`}}
	case said.Role != model.RoleTool:
		out.Calls = []model.Call{{ID: "c1", Name: "find_tools", Arguments: fmt.Sprintf(`{"query":"records of department %d"}`, s.department)}}
	default:
		out.Text = "I found nothing."
	}
	return out, nil
}

// TestFindTools: an agent with more tools than a request takes is shown those that fit the message,
// and finds and calls one that is not among them. All were loaded by two intents.
func TestFindTools(t *testing.T) {
	t.Parallel()
	records := crm.New(time.Now().UTC())
	records.Archive(150)
	srv := httptest.NewServer(records.Handler())
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	m := &seeker{department: 95}
	s := start(t, setup{Skills: []string{"name=crm -- " + srv.URL + "/mcp"}, Model: m})
	var got turn
	if status, p := s.call(s.as("ana"), http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": "Which tickets are open?"}, &got); status != http.StatusOK {
		t.Fatalf("%d %+v", status, p)
	}
	if got.Response != "All is kept." || records.Calls("archive_95") != 1 {
		t.Fatalf("%+v; the tool was called %d times", got, records.Calls("archive_95"))
	}
	names := func(req model.Request) (out []string) {
		for _, t := range req.Tools {
			out = append(out, t.Name)
		}
		return out
	}
	first := names(m.requests[0])
	if !slices.Contains(first, "list_tickets") || !slices.Contains(first, "find_tools") || slices.Contains(first, "archive_95") {
		t.Errorf("the first request offers %q", first)
	}
	for i, req := range m.requests {
		if n := len(req.Tools); n > 100 || n < 90 || len(m.requests) != 3 {
			t.Errorf("request %d of %d offers %d tools", i, len(m.requests), n)
		}
	}
	loads := 0
	for _, o := range s.intents(got.PlanID) {
		if o.Type != "skill.load" {
			continue
		}
		loads++
		var a catalog.SkillLoad
		if err := json.Unmarshal(o.Args, &a); err != nil || len(a.Skills) == 0 || o.Outcome == nil || o.Outcome.Status != "done" {
			t.Errorf("%s: %+v", o.Args, o.Outcome)
		}
	}
	if want := (len(crm.Tools()) + 150 + catalog.MaxLoaded - 1) / catalog.MaxLoaded; loads != want {
		t.Errorf("%d intents loaded the skills, want %d", loads, want)
	}
}
