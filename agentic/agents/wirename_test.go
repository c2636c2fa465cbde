package agents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
)

// of is a skill of a server.
func of(server, name string) catalog.Manifest {
	return catalog.Manifest{Endpoint: server, Name: server + "." + name}
}

func TestWireNames(t *testing.T) {
	long := strings.Repeat("close_ticket_", 5) // 65 characters
	tests := []struct {
		name   string
		skills []catalog.Manifest
		want   []string
	}{
		{"their own", []catalog.Manifest{of("crm", "close"), of("git", "commit")}, []string{"close", "commit"}},
		{"what a model cannot write", []catalog.Manifest{of("crm", "all.close/all ü")}, []string{"all_close_all__"}},
		{"one name of two servers", []catalog.Manifest{of("crm", "close"), of("git", "close"), of("git", "log")}, []string{"crm__close", "git__close", "log"}},
		{"one name by replacement", []catalog.Manifest{of("crm", "a.b"), of("git", "a_b")}, []string{"crm__a_b", "git__a_b"}},
		{"that of a built-in tool", []catalog.Manifest{of("crm", "write_memory")}, []string{"crm__write_memory"}},
		{"a server with other characters", []catalog.Manifest{of("builtin:x", "insufficient")}, []string{"builtin_x__insufficient"}},
		{"one of one server", []catalog.Manifest{of("crm", "a.b"), of("crm", "a_b")}, []string{"crm__a_b_2828001d", "crm__a_b_30000fca"}},
		{"too long", []catalog.Manifest{of("crm", long)}, []string{long[:55] + "_b116dee2"}},
		{"too long with its server", []catalog.Manifest{of("crm", long[:64]), of("git", long[:64])}, []string{"crm__" + long[:50] + "_b8b940fa", "git__" + long[:50] + "_cae6f66e"}},
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

// TestWireNamesOfHostileServers: whatever servers call their tools, each gets a name of
// its own that a model can write.
func TestWireNamesOfHostileServers(t *testing.T) {
	skills := []catalog.Manifest{of("crm", "a.b"), of("crm", "a_b"), of("crm", "write_memory"), of("x", strings.Repeat("ü", 100))}
	for range 4 { // each round takes the names that the one before gave to others
		for i, name := range WireNames(skills, nil) {
			if m := of("mimic", name); !slices.ContainsFunc(skills, func(s catalog.Manifest) bool { return s.Name == m.Name }) {
				skills = append(skills, m)
			}
			skills = append(skills, of("other", fullHash(skills[i])))
		}
		slices.SortFunc(skills, func(a, b catalog.Manifest) int { return strings.Compare(withServer(a), withServer(b)) })
		skills = slices.CompactFunc(skills, func(a, b catalog.Manifest) bool { return withServer(a) == withServer(b) })
	}
	builtin := map[string]bool{"write_memory": true}
	seen := map[string]bool{}
	legal := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	for i, name := range WireNames(skills, builtin) {
		if seen[name] || builtin[name] || !legal.MatchString(name) {
			t.Errorf("%+v is called %q", skills[i], name)
		}
		seen[name] = true
	}
}
