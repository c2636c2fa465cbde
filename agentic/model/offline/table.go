package offline

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// schema is the supported part of JSON Schema. Other parts are ignored: reading never fails.
type schema struct {
	Type        types              `json:"type"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Enum        []any              `json:"enum"`
	Examples    []any              `json:"examples"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Items       *schema            `json:"items"`
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
}

// types are the types that a schema allows.
type types []string

func (t *types) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) != nil {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = types{one}
	return nil
}

func (s *schema) UnmarshalJSON(b []byte) error {
	type fields schema
	_ = json.Unmarshal(b, (*fields)(s)) // a boolean or invalid schema says nothing
	return nil
}

func readSchema(raw json.RawMessage) *schema {
	s := new(schema)
	_ = json.Unmarshal(raw, s)
	return s
}

// resolve follows references to the definitions of root.
func (s *schema) resolve(root *schema) *schema {
	for range 8 {
		if s == nil {
			break
		}
		name, ref := strings.CutPrefix(s.Ref, "#/$defs/")
		if !ref {
			return s
		}
		s = root.Defs[name]
	}
	return new(schema)
}

// kind returns the one type besides null; empty if there is none or several.
func (s *schema) kind() string {
	list := slices.DeleteFunc(slices.Clone(s.Type), func(t string) bool { return t == "null" })
	switch {
	case len(list) == 1:
		return list[0]
	case len(list) == 0 && len(s.values()) > 0:
		return "string"
	}
	return ""
}

// values returns the texts that a schema enumerates or gives as examples.
func (s *schema) values() (out []string) {
	for _, v := range slices.Concat(s.Enum, s.Examples) {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// members returns the names of the properties, sorted: canonical JSON retains no other order.
func (s *schema) members() []string { return slices.Sorted(maps.Keys(s.Properties)) }

// table is the output of a skill. If its schema declares records, they have columns.
type table struct {
	skill   string
	path    []string // from the document to the records: nothing, or one member
	plural  string   // the noun for the records
	nouns   map[string]bool
	columns []*column // none: the skill declares no records
	nodes   int       // number of schema nodes read
	speaks  map[string]bool
}

// column is a member of the records that has one value.
type column struct {
	Name    string   `json:"name"` // its name in results
	Path    []string `json:"path"` // from the record
	typ     string
	phrases [][]string      // stems of its names
	about   map[string]bool // stems of its description
	values  []string        // texts that are declared
}

// maxNodes bounds the schema nodes read: a definition may contain itself, many times.
const maxNodes = 2000

// oneWord matches a name that a return_spec can have.
var oneWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// tableOf reads the output of a skill. A request that names the skill, or one to a skill without
// records, may also have the words of the skill's declaration, as in "git commit what is staged".
func tableOf(s skill, isNamed bool) *table {
	root := readSchema(s.OutputSchema)
	t := &table{skill: s.Name, plural: stem(append(parts(s.Name), "record")[0]) + "s", nouns: vocabulary(s.Name)}
	of := root.resolve(root)
	for _, name := range of.members() {
		if p := of.Properties[name].resolve(root); p.kind() == "array" && len(p.Items.resolve(root).Properties) > 0 {
			of, t.path = p, []string{name}
			break
		}
	}
	if record := of.Items.resolve(root); of.kind() == "array" && len(record.Properties) > 0 {
		for _, name := range append(slices.Clone(t.path), record.Title, of.Title) { // the best one last
			if oneWord.MatchString(name) {
				t.plural = strings.ToLower(name)
			}
		}
		t.nouns = vocabulary(t.plural, strings.Join(t.path, " "), record.Title)
		t.add(root, record, nil)
	}
	if len(t.columns) == 0 || isNamed {
		said := []string{s.Name, s.Description}
		for name, p := range readSchema(s.InputSchema).Properties {
			said = append(said, name, p.resolve(root).Title, p.resolve(root).Description)
		}
		t.speaks = vocabulary(said...)
		t.speaks[stem(s.Name)] = true
	}
	return t
}

// add creates columns for the scalars of a record and of the objects in it.
func (t *table) add(root, s *schema, path []string) {
	for _, key := range s.members() {
		if t.nodes++; t.nodes > maxNodes {
			return
		}
		p, at := s.Properties[key].resolve(root), append(slices.Clone(path), key)
		switch p.kind() {
		case "object":
			t.add(root, p, at)
		case "string", "number", "integer", "boolean":
			c := &column{Name: key, Path: at, typ: p.kind(), about: vocabulary(p.Description), values: p.values()}
			if oneWord.MatchString(p.Title) {
				c.Name = strings.ToLower(p.Title)
			}
			if t.first(func(d *column) bool { return d.Name == c.Name }) != nil {
				c.Name = strings.Join(at, "_")
			}
			if c.phrases = [][]string{stems(c.Name), stems(key), stems(p.Title)}; oneWord.MatchString(c.Name) {
				t.columns = append(t.columns, c)
			}
		}
	}
}

func (t *table) first(fits func(*column) bool) *column {
	if i := slices.IndexFunc(t.columns, fits); i >= 0 {
		return t.columns[i]
	}
	return nil
}

// numeric reports whether the column can be compared and measured, which an identifier cannot.
func (c *column) numeric() bool {
	return (c.typ == "number" || c.typ == "integer") && c.Name != "id" && !strings.HasSuffix(c.Name, "_id")
}

// label returns the column that identifies the records for a reader.
func (t *table) label() *column {
	for _, fits := range []func(*column) bool{
		func(c *column) bool { return slices.Contains([]string{"name", "title", "label", "place"}, c.Name) },
		func(c *column) bool { return t.nouns[stem(strings.TrimSuffix(c.Name, "_id"))] || c.Name == "id" },
		func(c *column) bool { return c.typ == "string" },
	} {
		if c := t.first(fits); c != nil {
			return c
		}
	}
	return t.columns[0]
}

// measure returns the only column of numbers, or with a word the only one whose description has
// it.
func (t *table) measure(stem string) *column {
	fitting := slices.DeleteFunc(slices.Clone(t.columns), func(c *column) bool { return !c.numeric() || stem != "" && !c.about[stem] })
	if len(fitting) == 1 {
		return fitting[0]
	}
	return nil
}

// example returns a column to compare by, for refusals.
func (t *table) example() string {
	if c := t.first((*column).numeric); c != nil {
		return spaced(c.Name)
	}
	return "value"
}
