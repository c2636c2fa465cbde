package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// echoRow is a vendor's row that is right.
const echoRow = `{"type":"x.acme.echo","title":"Say it again","capability":"x.acme:echo","signed_by":["task"],"executor":"x-acme",
 "effect":"pure","ttl_sec":60,"run_sec":10,"args_schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},
 "result_schema":{"type":"object"}}`

// vendors writes rows by file name.
func vendors(t *testing.T, rows map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range rows {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestExtended: a vendor's row is looked up, published, digested and validates,
// beside the built-in ones, which stay unchanged.
func TestExtended(t *testing.T) {
	t.Parallel()
	rows, err := ReadVendors(vendors(t, map[string]string{"x.acme.echo.json": echoRow, "README.md": "rows"}))
	if err != nil {
		t.Fatal(err)
	}
	ours, document := Builtin().Digest(), string(Builtin().Document())
	c, err := Extend(rows)
	if err != nil {
		t.Fatal(err)
	}
	row, ok := c.Lookup("x.acme.echo")
	if !ok || !row.Vendor() || row.TTL().Seconds() != 60 || row.Run().Seconds() != 10 || !row.MaySign(intents.RoleTask) || row.MaySign(intents.RoleGateway) {
		t.Fatalf("%+v", row)
	}
	s, err := row.ArgsSchema()
	if err != nil || len(s.ValidateBytes([]byte(`{"text":"x"}`))) != 0 || len(s.ValidateBytes([]byte(`{}`))) != 1 {
		t.Errorf("arguments are not held to their schema: %v", err)
	}
	if c.Digest() == ours || !strings.Contains(string(c.Document()), `"x.acme.echo"`) {
		t.Error("the catalog's digest or document is without it")
	}
	if _, ok := c.Lookup("skill.call"); !ok {
		t.Error("the built-in rows are gone")
	}
	var none *Catalog
	for name, c := range map[string]*Catalog{"built-in": Builtin(), "nil": none} {
		if _, ok := c.Lookup("x.acme.echo"); ok || c.Digest() != ours || string(c.Document()) != document {
			t.Errorf("the %s catalog is not the one of before", name)
		}
	}
	if again, err := Extend(nil); err != nil || again.Digest() != ours {
		t.Errorf("extended by nothing it is another one: %v", err)
	}
	if _, err := Extend(append(rows, rows...)); err == nil {
		t.Error("a type stands twice")
	}
	if _, err := Extend([]Row{{Type: "skill.call"}}); err == nil {
		t.Error("a vendor's row is called as one of ours")
	}
}

// TestVendorRefused: each fault is named by file and pointer.
func TestVendorRefused(t *testing.T) {
	for name, x := range map[string]struct{ old, with, pointer string }{
		"type of ours":       {`"x.acme.echo"`, `"skill.call"`, "/type"},
		"type without name":  {`"x.acme.echo"`, `"x.acme"`, "/type"},
		"another file":       {`"x.acme.echo"`, `"x.acme.shout"`, "/type"},
		"capability of ours": {`"x.acme:echo"`, `"admin:keys"`, "/capability"},
		"capability of all":  {`"x.acme:echo"`, `"*:*"`, "/capability"},
		"another's area":     {`"x.acme:echo"`, `"x.globex:echo"`, "/capability"},
		"signed by a router": {`["task"]`, `["router"]`, "/signed_by/0"},
		"signed by nobody":   {`["task"]`, `[]`, "/signed_by"},
		"executor of ours":   {`"x-acme"`, `"files"`, "/executor"},
		"the router":         {`"x-acme"`, `"router"`, "/executor"},
		"another's executor": {`"x-acme"`, `"x-acmeevil"`, "/executor"},
		"effect":             {`"pure"`, `"pin"`, "/effect"},
		"ttl":                {`"ttl_sec":60`, `"ttl_sec":301`, "/ttl_sec"},
		"unknown member":     {`"effect"`, `"efect":"pure","effect"`, "/efect"},
		"member twice":       {`"effect"`, `"effect":"once","effect"`, "/effect"},
		"args schema":        {`"type":"string"`, `"type":"text"`, "/args_schema"},
		"remote reference":   {`{"type":"object"}`, `{"$ref":"https://example.org/x.json"}`, "/result_schema"},
	} {
		if !strings.Contains(echoRow, x.old) {
			t.Fatalf("no %s", x.old)
		}
		rows, err := ReadVendors(vendors(t, map[string]string{"x.acme.echo.json": strings.Replace(echoRow, x.old, x.with, 1)}))
		if err == nil || !strings.Contains(err.Error(), "x.acme.echo.json at "+x.pointer+": ") {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
	}
	if _, err := ReadVendors(t.TempDir()); err == nil {
		t.Error("an empty directory is a catalog")
	}
	if _, err := ReadVendors(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no directory is a catalog")
	}
}
