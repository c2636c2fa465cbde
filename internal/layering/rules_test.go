// Package layering knows which package may import which, and finds
// the imports that break it. Imports point down: a package sees the floors below
// its own and its own column, nothing beside it. Its test runs over this module.
package layering

import (
	"cmp"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Module is our import path.
const Module = "aob.dev/writ"

// column is a package with everything below it, on a floor. Where a longer path
// fits as well, the longer one counts.
type column struct {
	path  string
	floor int
	// users limits who may import it from above; nil: every higher floor.
	users []string
}

// columns is the house, floor by floor. A folder at the top has a trade; internal has what serves
// all floors, and the programs that people and operators start.
var columns = []column{
	{"cmd", 10, nil},
	{"internal/e2e", 10, nil},
	{"internal/testing", 9, []string{}},
	{"internal/cli", 9, nil},
	{"internal/demo", 8, nil},
	{"internal/docs", 8, nil},
	{"bench", 8, nil},
	{"internal/demo/quakes", 6, nil},
	{"internal/node", 7, nil},
	{"gateway/consoleapi/reads", 6, []string{"internal/node"}},
	{"internal/snapshot", 6, []string{"internal/node", "bench"}},
	{"upkeep", 6, []string{"internal/cli"}},
	{"cell", 6, []string{"internal"}},
	{"internal/client", 5, nil},
	{"internal/datadir", 5, nil},
	{"internal/eval", 5, []string{"internal/cli"}},

	{"router", 4, nil},
	{"gateway", 4, nil},
	{"agentic", 4, nil},
	{"agentic/model/offline", 4, []string{"internal"}},
	{"executors", 4, nil},
	{"audit", 4, nil},

	{"monitor", 3, []string{"cell", "internal", "upkeep", "gateway"}},
	{"notices", 3, []string{"internal"}},
	{"gateway/consoleapi", 3, []string{"router/httpapi", "gateway", "internal/node"}},
	{"gateway/readapi", 3, []string{"router/httpapi", "gateway", "internal/node"}},
	{"state", 3, []string{"gateway/consoleapi/reads", "cell", "executors/skills/approval", "router", "audit", "bench", "internal", "upkeep"}},

	{"state/agents", 2, []string{"agentic", "gateway", "state", "router", "audit", "internal", "upkeep"}},
	{"state/document", 2, []string{"state"}},
	{"state/workflows", 2, []string{"agentic", "gateway", "state", "router", "audit", "internal", "upkeep"}},
	{"policies", 2, []string{"gateway/consoleapi/reads", "cell", "router", "audit", "bench", "internal", "upkeep"}},
	{"storage", 2, []string{"gateway/consoleapi/reads", "cell", "monitor", "state", "router", "executors", "audit", "bench", "internal", "upkeep"}},
	{"storage/views", 2, []string{"router/httpapi", "executors"}},
	{"storage/sqlite", 2, drivers},
	{"storage/statement", 2, []string{"executors"}},
	{"storage/blobdir", 2, drivers},
	{"storage/blobnats", 2, drivers},
	{"storage/blobs3", 2, drivers},
	{"storage/jetstream", 2, drivers},
	{"storage/quota", 2, drivers},
	{"storage/opensearch", 2, drivers},
	{"storage/ledger", 2, append([]string{"audit"}, drivers...)},

	{"internal/problem", 2, nil},
	{"internal/keydir", 2, nil},
	{"internal/openid", 2, []string{"gateway", "internal"}},

	{"intents", 1, nil},

	{"schemas", 0, nil},
	{"bus", 0, nil},
	{"bus/natsserver", 0, append([]string{"internal/testing"}, drivers...)},
	{"internal/config", 0, nil},
	{"internal/durable", 0, nil},
	{"internal/embed", 1, []string{"executors/memory", "executors/knowledge", "internal"}},
	{"internal/failpoint", 0, nil},
	{"internal/health", 0, nil},
	{"internal/layering", 0, nil},
	{"bench/scale", 0, []string{"bench"}},
	{"executors/knowledge/pdf", 1, []string{"executors/knowledge"}},
	{"internal/rootdir", 0, nil},
	{"internal/notify", -1, []string{"audit", "monitor", "notices", "internal"}},
	{"internal/slack", 1, []string{"internal/cli"}},
	{"internal/telemetry", 1, nil},
	{"internal/clock", -1, nil},
	{"internal/sealed", -1, nil},
	{"internal/egress", -2, nil},
	{"internal/logging", -1, nil},
	{"internal/ratelimit", -1, nil},
	{"internal/redact", -2, []string{"agentic", "executors", "internal/logging"}},
	{"internal/visible", -1, nil},
	{"internal/tracing", -1, nil},
}

// drivers are opened by the one who wires a process and by those who look after
// its data directory, and measured bare by bench.
var drivers = []string{"cell", "internal/node", "internal/datadir", "internal/snapshot", "upkeep", "bench"}

// only lists the importers of third-party packages. A path covers all below it.
var only = map[string][]string{
	"github.com/coreos/go-oidc":              {"internal/openid"},
	"github.com/coder/websocket":             {"gateway", "internal/client"},
	"github.com/gin-gonic/gin":               {"router/httpapi", "gateway", "internal/problem/edge"},
	"github.com/nats-io/nats.go":             {"bench/measure", "bus", "internal/testing/natstest", "storage/blobnats", "storage/jetstream"},
	"github.com/nats-io/nats-server":         {"bench/measure", "bus/natsserver", "internal/testing/natstest"},
	"github.com/open-policy-agent/opa":       {"policies"},
	"github.com/go-jose/go-jose":             {"intents"},
	"filippo.io/edwards25519":                {"intents"},
	"github.com/hdevalence":                  {"intents"},
	"github.com/gowebpki/jcs":                {"intents"},
	"github.com/openai/openai-go":            {"agentic/model"},
	"github.com/opensearch-project":          {"storage/opensearch"},
	"github.com/minio/minio-go":              {"internal/testing/s3test", "storage/blobs3"},
	"github.com/mark3labs/mcp-go":            {"executors/mcp", "bench", "gateway", "internal/client", "internal/demo"},
	"github.com/modelcontextprotocol/go-sdk": {"executors/oauth", "internal/openid"},
	"golang.org/x/oauth2":                    {"executors/oauth", "internal/openid"},
	"github.com/transparency-dev/tessera":    {"storage/ledger"},
	"modernc.org/sqlite":                     {"storage/sqlite", "storage/statement"},
	"github.com/spf13/cobra":                 {"internal/cli"},
	"github.com/stretchr/testify":            {},
	"cel.dev/cel-go":                         {"state/workflows"},
	"github.com/getkin/kin-openapi":          {"executors/mcp", "internal/testing/edgetest"},
	"github.com/prometheus":                  {"internal/telemetry"},
	"go.opentelemetry.io/contrib":            {"internal/telemetry"},
	"go.opentelemetry.io/otel/exporters":     {"internal/telemetry"},
	"go.opentelemetry.io/otel/sdk":           {"internal/telemetry"},
	"github.com/santhosh-tekuri/jsonschema":  {"schemas", "agentic/model", "executors/mcp"},
}

// Breach is one import that may not be.
type Breach struct {
	From, To, Why string
}

func (b Breach) String() string { return fmt.Sprintf("%s imports %s: %s", b.From, b.To, b.Why) }

// Imports reads the imports of every package below root, tests left out, by
// path inside the module ("" for root itself).
func Imports(root string) (map[string][]string, error) {
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		pkg, err := build.ImportDir(dir, 0)
		if nothing := (*build.NoGoError)(nil); errors.As(err, &nothing) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		out[strings.TrimPrefix(filepath.ToSlash(rel), ".")] = pkg.Imports
		return nil
	})
	return out, err
}

// Check finds the breaches in the imports of a module, sorted.
func Check(imports map[string][]string) []Breach {
	var out []Breach
	for from, list := range imports {
		for _, to := range list {
			if why := judge(from, to); why != "" {
				out = append(out, Breach{from, to, why})
			}
		}
		if _, ok := home(from); !ok {
			out = append(out, Breach{from, "", "the package has no place in the house: give it a row in internal/layering"})
		}
	}
	slices.SortFunc(out, func(a, b Breach) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return out
}

// judge explains why an import is forbidden; empty: it is allowed.
func judge(from, to string) string {
	inside, ours := strings.CutPrefix(to, Module+"/")
	if !ours {
		for lib, users := range only {
			if below(to, lib) && !slices.ContainsFunc(users, func(u string) bool { return below(from, u) }) {
				return fmt.Sprintf("only %v may", users)
			}
		}
		return ""
	}
	a, ok := home(from)
	b, known := home(inside)
	switch {
	case !ok || !known:
		return "" // told once, as a package without a place
	case top(a.path) == top(b.path) && a.floor >= b.floor && (b.users == nil || !b.limits(from)):
		return ""
	case a.floor < b.floor:
		return fmt.Sprintf("floor %d may not see floor %d", a.floor, b.floor)
	case a.floor == b.floor:
		return "there is no edge between the columns of a floor"
	case b.users != nil && b.limits(from):
		return fmt.Sprintf("only %v may", b.users)
	}
	return ""
}

// limits reports that from is none of the users, and not inside the column either.
func (c column) limits(from string) bool {
	return !below(from, c.path) && !slices.ContainsFunc(c.users, func(u string) bool { return below(from, u) })
}

// home of a package: the longest column that covers it.
func home(pkg string) (column, bool) {
	var best column
	for _, c := range columns {
		if below(pkg, c.path) && len(c.path) > len(best.path) {
			best = c
		}
	}
	return best, best.path != ""
}

// top names the column as a whole: storage/sqlite belongs to storage, whereas
// every folder of internal stands for itself.
func top(column string) string {
	if first, rest, ok := strings.Cut(column, "/"); ok {
		if first == "internal" {
			second, _, _ := strings.Cut(rest, "/")
			return path.Join(first, second)
		}
		return first
	}
	return column
}

func below(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }
