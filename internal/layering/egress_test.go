package layering

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
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
			if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(doors[as[pkg.Name]], sel.Sel.Name) {
				found = append(found, fmt.Sprintf("%s.%s", as[pkg.Name], sel.Sel.Name))
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
	for code, want := range map[string]int{
		`import "net/http"; var c = http.DefaultClient`:                         1,
		`import "net/http"; var c = &http.Client{Transport: &http.Transport{}}`: 2,
		`import web "net/http"; func f() { web.Get("http://a.example") }`:       1,
		`import "net"; var c = new(net.Dialer)`:                                 1,
		`import "crypto/tls"; func f() { tls.Dial("tcp", "a:1", nil) }`:         1,
		`import "net/http"; type a struct { c *http.Client }`:                   0,
		`import "net/http"; var h http.Handler`:                                 0,
	} {
		if found, err := doorsIn("package a; " + code); err != nil || len(found) != want {
			t.Errorf("%s: %v, %v, want %d", code, found, err, want)
		}
	}
}
