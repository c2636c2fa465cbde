package config

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documented is one row of the table of keys.
type documented struct {
	Key, Default string
	Variables    []string
}

var code = regexp.MustCompile("`([^`]*)`")

// words are what stands in code marks in one cell.
func words(cell string) []string {
	var out []string
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// page reads the rows of docs/configuration.md that have a key.
func page(t *testing.T) []documented {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []documented
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || !strings.Contains(cells[0], "`") {
			continue
		}
		row := documented{Key: words(cells[0])[0], Variables: words(cells[2])}
		if d := words(cells[1]); len(d) > 0 {
			row.Default = d[0]
		}
		if strings.TrimSpace(cells[4]) == "" {
			t.Errorf("%s: nothing is said about it", row.Key)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestDocumented: every key with its default and its variables stands in the
// page, in the order of Config, and nothing else does.
func TestDocumented(t *testing.T) {
	var want []documented
	c := reflect.ValueOf(Default())
	for i := range c.NumField() {
		row := documented{Key: c.Type().Field(i).Tag.Get("yaml")}
		switch v := c.Field(i).Interface().(type) {
		case string:
			row.Default = v
		case int:
			row.Default = strconv.Itoa(v)
		}
		row.Variables = namesOf(c.Type().Field(i).Name)
		want = append(want, row)
	}
	if len(want) == 0 {
		t.Fatal("Config has no keys")
	}
	if d := cmp.Diff(want, page(t)); d != "" {
		t.Errorf("docs/configuration.md (-code +page):\n%s", d)
	}
}

// namesOf are the variables that change a field, the strongest first.
func namesOf(field string) []string {
	var out []string
	for i := len(variables) - 1; i >= 0; i-- { // later entries count over earlier ones
		c := Default()
		variables[i].set(&c, "1")
		if !reflect.DeepEqual(reflect.ValueOf(c).FieldByName(field).Interface(), reflect.ValueOf(Default()).FieldByName(field).Interface()) {
			out = append(out, variables[i].names...)
		}
	}
	return out
}

// TestVariables: each name is set by one entry, and each entry sets one key.
func TestVariables(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range variables {
		changed := 0
		c, d := Default(), Default()
		v.set(&c, "1")
		for i := range reflect.TypeFor[Config]().NumField() {
			if !reflect.DeepEqual(reflect.ValueOf(c).Field(i).Interface(), reflect.ValueOf(d).Field(i).Interface()) {
				changed++
			}
		}
		if changed != 1 {
			t.Errorf("%v changes %d keys", v.names, changed)
		}
		for _, name := range v.names {
			if seen[name] {
				t.Errorf("%s stands twice", name)
			}
			seen[name] = true
		}
	}
}
