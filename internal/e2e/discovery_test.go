package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// discoveryWait is how long services have to answer; they are in this process.
const discoveryWait = time.Second

// TestDiscovery asks for all micro services, as `nats micro ls` does: every
// executor of the catalog answers, with the subjects of its own types and no
// other, and so does the router.
func TestDiscovery(t *testing.T) {
	s := start(t, setup{})
	infos, err := s.node.Bus().Services(t.Context(), discoveryWait)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, i := range infos {
		if i.ID == "" || i.Version == "" {
			t.Errorf("service %+v", i)
		}
		if len(got[i.Name]) > 0 {
			t.Errorf("%s answers twice", i.Name)
		}
		slices.Sort(i.Subjects)
		got[i.Name] = i.Subjects
	}
	want := map[string][]string{}
	for _, row := range catalog.Builtin().Rows() {
		if row.Executor != catalog.ExecutorRouter {
			name := bus.ServiceName(row.Executor)
			want[name] = append(want[name], bus.Exec(row.Type))
		}
	}
	if len(want) == 0 {
		t.Fatal("the catalog has no executors")
	}
	for name, subjects := range want {
		slices.Sort(subjects)
		if d := cmp.Diff(subjects, got[name]); d != "" {
			t.Errorf("%s hears (-want +got):\n%s", name, d)
		}
	}
	for name, subjects := range got {
		if want[name] == nil && slices.ContainsFunc(subjects, func(s string) bool { return strings.HasPrefix(s, "writ.exec.") }) {
			t.Errorf("%s is no executor of the catalog and hears %v", name, subjects)
		}
	}
	if !slices.Contains(got[bus.ServiceName("router")], bus.Orders) {
		t.Errorf("the router hears %v", got[bus.ServiceName("router")])
	}
}
