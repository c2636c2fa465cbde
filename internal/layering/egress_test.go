package layering

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// doors are the ways by which a program could send something out past internal/egress.
var doors = map[string][]string{
	"net/http":   {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
	"net":        {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "Dialer"},
	"crypto/tls": {"Dial", "DialWithDialer", "Dialer"},
}

// libraries make connections of their own. Of each, what does so, and what must stand in the
// same file to give it a client of ours; empty: nothing would. Those without a row for what
// they have serve, or need none of it: each says why.
var libraries = map[string]struct {
	why    string
	makers map[string]string
}{
	"github.com/mark3labs/mcp-go/client": {makers: map[string]string{
		"NewStreamableHttpClient": "WithHTTPBasicClient", "NewSSEMCPClient": "", "NewOAuthStreamableHttpClient": "", "NewOAuthSSEClient": "", "NewStdioMCPClient": "",
	}},
	"github.com/mark3labs/mcp-go/client/transport": {makers: map[string]string{"NewStreamableHTTP": "WithHTTPBasicClient", "NewSSE": ""}},
	"github.com/modelcontextprotocol/go-sdk/auth":  {makers: map[string]string{"GetAuthServerMetadata": "s.http"}},
	"github.com/modelcontextprotocol/go-sdk/oauthex": {makers: map[string]string{
		"GetProtectedResourceMetadata": "s.http", "GetAuthServerMeta": "s.http", "RegisterClient": "s.http", "ExchangeToken": "s.http",
	}},
	"golang.org/x/oauth2":                                               {makers: map[string]string{"Config": "oauth2.HTTPClient", "NewClient": ""}},
	"golang.org/x/oauth2/clientcredentials":                             {makers: map[string]string{"Config": "oauth2.HTTPClient"}},
	"github.com/minio/minio-go/v7":                                      {makers: map[string]string{"New": "Transport", "NewCore": "Transport", "DefaultTransport": ""}},
	"github.com/minio/minio-go/v7/pkg/credentials":                      {makers: map[string]string{"NewIAM": "", "NewSTSAssumeRole": "", "NewSTSWebIdentity": ""}},
	"github.com/openai/openai-go/v3":                                    {makers: map[string]string{"NewClient": "WithHTTPClient", "NewChatCompletionService": "WithHTTPClient"}},
	"github.com/opensearch-project/opensearch-go":                       {makers: map[string]string{"NewClient": "Transport", "NewDefaultClient": ""}},
	"github.com/transparency-dev/tessera":                               {makers: map[string]string{"NewHTTPFetcher": ""}},
	"github.com/open-policy-agent/opa":                                  {why: "http.send is not among the functions of a policy"},
	"github.com/nats-io/nats.go":                                        {why: "no HTTP: the bus, and a store that the operator names"},
	"github.com/nats-io/nats-server":                                    {why: "it listens"},
	"github.com/coreos/go-oidc/v3/oidc":                                 {makers: map[string]string{"NewProvider": "ClientContext", "NewRemoteKeySet": "ClientContext"}},
	"github.com/coder/websocket":                                        {makers: map[string]string{"Dial": "HTTPClient"}},
	"github.com/gin-gonic/gin":                                          {why: "it serves"},
	"github.com/mark3labs/mcp-go":                                       {why: "it serves, and has types"},
	"github.com/prometheus/client_golang":                               {why: "it serves"},
	"github.com/transparency-dev/formats":                               {why: "notes"},
	"github.com/getkin/kin-openapi":                                     {why: "reads documents, and refuses references to others"},
	"github.com/go-jose/go-jose":                                        {why: "reads certificates"},
	"github.com/spf13":                                                  {why: "flags that are addresses"},
	"github.com/klippa-app/go-pdfium":                                   {why: "reads documents; no socket of the WebAssembly is given to it"},
	"github.com/tetratelabs/wazero":                                     {why: "runs WebAssembly, whose sockets only a host configuration opens, and none does"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp":   {makers: map[string]string{"New": "WithHTTPClient", "NewClient": "WithHTTPClient"}},
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp": {makers: map[string]string{"New": "WithHTTPClient"}},
	"go.opentelemetry.io/otel":                                          {why: "spans and figures; only its exporters send"},
	"go.opentelemetry.io/contrib/bridges/prometheus":                    {why: "reads figures"},
	"golang.org/x/net/http":                                             {why: "forms of headers, and of a proxy's setting"},
	"modernc.org/sqlite":                                                {why: "the library C has sockets, which no database uses"},
}

// library is the closest row for a package.
func library(path string) string {
	for at := path; ; {
		if _, ok := libraries[at]; ok {
			return at
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return ""
		}
		at = at[:i]
	}
}

var version = regexp.MustCompile(`^v\d+$`)

// doorsIn names the doors that a file opens. A pointer to a client or transport opens
// none.
func doorsIn(text string) (found []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	as := map[string]string{} // the path of an import, by its name in the file
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if version.MatchString(name) { // the name is that of the directory above, without what it says of Go
			name = path[:len(path)-len(name)-1]
			name = strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], "-go")
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		as[name] = path
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if _, pointer := n.(*ast.StarExpr); pointer {
			return false
		}
		if sel, ok := n.(*ast.SelectorExpr); ok {
			pkg, _ := sel.X.(*ast.Ident)
			if pkg == nil {
				return true
			}
			path := as[pkg.Name]
			client, makes := libraries[library(path)].makers[sel.Sel.Name]
			if slices.Contains(doors[path], sel.Sel.Name) || makes && (client == "" || !strings.Contains(text, client)) {
				found = append(found, fmt.Sprintf("%s.%s", path, sel.Sel.Name))
			}
		}
		return true
	})
	return found, nil
}

// TestOneDoor: what goes out by HTTP goes through internal/egress. Servers for tests are
// left out.
func TestOneDoor(t *testing.T) {
	files, inside := 0, 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != root && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasSuffix(base, "test")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := doorsIn(string(text))
		if strings.Contains(filepath.ToSlash(name), "/internal/egress/") {
			inside += len(found)
		} else if len(found) > 0 {
			t.Errorf("%s has %v: use internal/egress", name, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 || inside < 3 {
		t.Errorf("%d files, %d doors in internal/egress: the test finds nothing", files, inside)
	}
}

// TestDoorsAreFound: the check would see each way.
func TestDoorsAreFound(t *testing.T) {
	for _, tt := range []struct {
		code  string
		doors int
	}{
		{`import "net/http"; var c = http.DefaultClient`, 1},
		{`import "net/http"; var c = &http.Client{Transport: &http.Transport{}}`, 2},
		{`import web "net/http"; func f() { web.Get("http://a.example") }`, 1},
		{`import "net"; var c = new(net.Dialer)`, 1},
		{`import "crypto/tls"; func f() { tls.Dial("tcp", "a:1", nil) }`, 1},
		{`import "net/http"; type a struct { c *http.Client }`, 0},
		{`import "github.com/mark3labs/mcp-go/client/transport"; var c, _ = transport.NewStreamableHTTP("http://a.example")`, 1},
		{`import "github.com/mark3labs/mcp-go/client/transport"; var c, _ = transport.NewStreamableHTTP("http://a.example", transport.WithHTTPBasicClient(mine))`, 0},
		{`import "github.com/minio/minio-go/v7"; var c, _ = minio.New("a.example", &minio.Options{Creds: mine})`, 1},
		{`import "github.com/minio/minio-go/v7"; var c, _ = minio.New("a.example", &minio.Options{Creds: mine, Transport: mine})`, 0},
		{`import "github.com/minio/minio-go/v7"; var c, _ = minio.DefaultTransport(true)`, 1},
		{`import "github.com/openai/openai-go/v3"; var c = openai.NewClient()`, 1},
		{`import "github.com/opensearch-project/opensearch-go/v4"; var c, _ = opensearch.NewDefaultClient()`, 1},
		{`import "net/http"; var h http.Handler`, 0},
	} {
		if found, err := doorsIn("package a; " + tt.code); err != nil || len(found) != tt.doors {
			t.Errorf("%s: %v, %v, want %d", tt.code, found, err, tt.doors)
		}
	}
}

// TestLibrariesThatDial: each library that could make connections has a row above, so a new one
// is looked at before it comes into use.
func TestLibrariesThatDial(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}}|{{join .Imports ","}}|{{join .Deps ","}}{{end}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ours, dials, users := map[string][]string{}, map[string]bool{}, map[string][]string{}
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		if below(parts[0], Module) {
			ours[parts[0]] = strings.Split(parts[1], ",")
		} else {
			dials[parts[0]] = slices.Contains(strings.Split(parts[2], ","), "net")
		}
	}
	for pkg, imports := range ours {
		for _, path := range imports {
			if dials[path] {
				users[library(path)] = append(users[library(path)], pkg+" imports "+path)
			}
		}
	}
	if len(ours) < 40 || len(users) < 10 {
		t.Fatalf("%d packages, %d libraries: the test finds nothing", len(ours), len(users))
	}
	for _, use := range users[""] {
		t.Errorf("%s, which can make connections: see what, and give it a row in libraries", use)
	}
	for row, x := range libraries {
		if len(users[row]) == 0 {
			t.Errorf("%s is not used, or makes no connections", row)
		}
		if (x.why == "") == (len(x.makers) == 0) {
			t.Errorf("%s: say either what makes connections, or why nothing does", row)
		}
	}
}
