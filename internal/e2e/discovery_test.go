package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/micro"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
)

// TestDiscovery asks for the micro services, as `nats micro info` does: every
// executor of the catalog answers, with the subjects of its own types and of its
// reports and no other but what skills has for reads of people, and so does the
// router.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	want := map[string][]string{}
	for _, row := range catalog.Builtin().Rows() {
		if row.Executor != catalog.ExecutorRouter {
			name := bus.ServiceName(row.Executor)
			if want[name] == nil {
				want[name] = []string{bus.Reports(row.Executor)}
			}
			want[name] = append(want[name], bus.Exec(row.Type))
		}
	}
	if len(want) == 0 {
		t.Fatal("the catalog has no executors")
	}
	skills := bus.ServiceName("skills")
	want[skills] = append(want[skills], bus.SkillVersions, bus.SkillAnswers, bus.CallerKeys) // for reads of people, and keys of callers
	for name, subjects := range want {
		slices.Sort(subjects)
		if d := cmp.Diff(subjects, subjectsOf(t, s, name)); d != "" {
			t.Errorf("%s hears (-want +got):\n%s", name, d)
		}
	}
	router := subjectsOf(t, s, bus.ServiceName("router"))
	if !slices.Contains(router, bus.Intents) || slices.ContainsFunc(router, func(s string) bool { return strings.HasPrefix(s, "writ.exec.") }) {
		t.Errorf("the router hears %v", router)
	}
}

// subjectsOf are the subjects of a micro service, sorted.
func subjectsOf(t *testing.T, s *system, name string) []string {
	t.Helper()
	answer, err := s.node.Bus().Request(t.Context(), "$SRV.INFO."+name, nil)
	if err != nil {
		t.Fatal(name, err)
	}
	var info micro.Info
	if err := json.Unmarshal(answer, &info); err != nil || info.ID == "" || info.Version == "" {
		t.Errorf("service %s, error %v", answer, err)
	}
	var subjects []string
	for _, e := range info.Endpoints {
		subjects = append(subjects, e.Subject)
	}
	slices.Sort(subjects)
	return subjects
}
