package layering

import (
	"slices"
	"strings"
	"testing"
)

// The agentic layer runs nothing and opens nothing: it has the bus, and its
// models have HTTP.
func TestAgenticOnlyThinks(t *testing.T) {
	imports, err := Imports(root)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for pkg, list := range imports {
		inside := strings.TrimPrefix(pkg, "/")
		if inside != "agentic" && !strings.HasPrefix(inside, "agentic/") {
			continue
		}
		seen++
		for _, to := range list {
			if slices.Contains([]string{"os", "os/exec", "os/user", "syscall", "unsafe", "plugin", "net", "io/ioutil", "database/sql"}, to) ||
				to == "net/http" && inside != "agentic/model" {
				t.Errorf("%s imports %s", inside, to)
			}
		}
	}
	if seen < 2 {
		t.Errorf("%d packages of the agentic layer found", seen)
	}
}
