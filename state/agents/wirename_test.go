package agents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
)

// manifestOf is a skill of a server.
func manifestOf(server, name string) catalog.Manifest {
	return catalog.Manifest{Endpoint: server, Name: server + "." + name}
}

func TestWireNames(t *testing.T) {
	long := strings.Repeat("close_ticket_", 5) // 65 characters
	tests := []struct {
		name   string
		skills []catalog.Manifest
		want   []string
	}{
		{"their own", []catalog.Manifest{manifestOf("crm", "close"), manifestOf("git", "commit")}, []string{"close", "commit"}},
		{"what a model cannot write", []catalog.Manifest{manifestOf("crm", "all.close/all ü")}, []string{"all_close_all__"}},
		{"one name of two servers", []catalog.Manifest{manifestOf("crm", "close"), manifestOf("git", "close"), manifestOf("git", "log")}, []string{"crm__close", "git__close", "log"}},
		{"one name by replacement", []catalog.Manifest{manifestOf("crm", "a.b"), manifestOf("git", "a_b")}, []string{"crm__a_b", "git__a_b"}},
		{"that of a built-in tool", []catalog.Manifest{manifestOf("crm", "write_memory")}, []string{"crm__write_memory"}},
		{"a server with other characters", []catalog.Manifest{manifestOf("builtin:x", "insufficient")}, []string{"builtin_x__insufficient"}},
		{"one of one server", []catalog.Manifest{manifestOf("crm", "a.b"), manifestOf("crm", "a_b")}, []string{"crm__a_b_2828001d", "crm__a_b_30000fca"}},
		{"too long", []catalog.Manifest{manifestOf("crm", long)}, []string{long[:44] + "_b116dee2"}},
		{"too long with its server", []catalog.Manifest{manifestOf("crm", long[:53]), manifestOf("git", long[:53])}, []string{"crm__" + long[:39] + "_0320473b", "git__" + long[:39] + "_835ab6f7"}},
	}
	builtin := map[string]bool{"write_memory": true, "insufficient": true}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, WireNames(tt.skills, builtin)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		slices.Reverse(tt.skills)
		slices.Reverse(tt.want)
		if d := cmp.Diff(tt.want, WireNames(tt.skills, builtin)); d != "" {
			t.Errorf("%s, the other way round (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestWireNameStays: a skill has the name of its first approval, whatever is approved after it.
func TestWireNameStays(t *testing.T) {
	given := map[string]bool{}
	for _, tt := range [][2]string{
		{"a.search", "search"},
		{"b.search", "b__search"},
		{"c.b__search", "c__b__search"},
		{"b.search.x", "search_x"},
		{"c.search/x", "c__search_x"},
		{"plain", "plain"},
		{"d.plain", "d__plain"},
		{"a.b", "b"},
		{"a.b.", "b_"},
		{"a.b/", "a__b_"},
		{"a.b_", "a__b__2de17183"},
	} {
		got := WireName(tt[0], func(name string) bool { return given[name] })
		if got != tt[1] || given[got] {
			t.Errorf("%s is called %q, want %q", tt[0], got, tt[1])
		}
		given[got] = true
	}
	if got := WireNames([]catalog.Manifest{{Name: "b.search", Endpoint: "b", WireName: "search"}, manifestOf("c", "find")}, map[string]bool{"find": true}); !slices.Equal(got, []string{"search", "c__find"}) {
		t.Error(got)
	}
	if got := WireName("a.x", func(name string) bool { return len(name) < maxWireName || name == fullHash("a.x") }); got != fullHash(fullHash("a.x")) {
		t.Error(got)
	}
}

// TestWireNamesOfHostileServers: whatever names servers give their tools, each gets a unique
// name that a model can write.
func TestWireNamesOfHostileServers(t *testing.T) {
	skills := []catalog.Manifest{manifestOf("crm", "a.b"), manifestOf("crm", "a_b"), manifestOf("crm", "write_memory"), manifestOf("x", strings.Repeat("ü", 100))}
	for range 4 { // each round uses names that the previous one generated for others
		for i, name := range WireNames(skills, nil) {
			if m := manifestOf("mimic", name); !slices.ContainsFunc(skills, func(s catalog.Manifest) bool { return s.Name == m.Name }) {
				skills = append(skills, m)
			}
			skills = append(skills, manifestOf("other", fullHash(fullName(skills[i]))))
		}
		slices.SortFunc(skills, func(a, b catalog.Manifest) int { return strings.Compare(withServer(a), withServer(b)) })
		skills = slices.CompactFunc(skills, func(a, b catalog.Manifest) bool { return withServer(a) == withServer(b) })
	}
	builtin := map[string]bool{"write_memory": true}
	seen := map[string]bool{}
	legal := regexp.MustCompile(`^[A-Za-z0-9_-]{1,53}$`)
	for i, name := range WireNames(skills, builtin) {
		if seen[name] || builtin[name] || !legal.MatchString(name) {
			t.Errorf("%+v is called %q", skills[i], name)
		}
		seen[name] = true
	}
}
