package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settingRows is the table of settings: flags, the file, the environment and the page
// docs/configuration.md are made of it.
//
//go:embed settings.yaml
var settingRows []byte

// Setting is one row of it.
type Setting struct {
	Name    string   // key of the file; the flag has - for _
	Field   string   // of Config, where the value is: a string, an int or a []string
	Also    []string // further variables; WRIT_<NAME> overrides them
	Default any      // nil: empty
	Help    string   // of the flag
	More    string   // addition of the page
	Secret  bool     // no flag, because others can read a command line
	Least   int      // of a number
	Switch  string   // variable that makes a number 0 if it is false
	Entries bool     // its entries in the file may be mappings, which go to SkillServers
}

// Settings in the order of the page.
var Settings = func() (rows []Setting) {
	dec := yaml.NewDecoder(bytes.NewReader(settingRows))
	dec.KnownFields(true)
	if err := dec.Decode(&rows); err != nil {
		panic(err) // embedded at build time; every test of this package fails
	}
	return rows
}()

// Bind points to the value of a setting: a *string, *int or *[]string.
func (s Setting) Bind(c *Config) any {
	return reflect.ValueOf(c).Elem().FieldByName(s.Field).Addr().Interface()
}

// Flag of a setting.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Name, "_", "-") }

// Variables of a setting. The first one that is set counts.
func (s Setting) Variables() []string {
	return append([]string{"WRIT_" + strings.ToUpper(s.Name)}, s.Also...)
}

// Variables of other programs that are read in a way of their own.
const (
	port        = "PORT"                // changes the port of Listen alone
	nodeEnv     = "NODE_ENV"            // others give it values of their own, too
	firestore   = "FIRESTORE_DATABASE"  // the name of a database
	secretName  = "API_KEY_SECRET_NAME" //nolint:gosec // G101: where a secret is, and not the secret
	noFirestore = "(default)"
)

// Environments that a writ can be run in.
const (
	Development = "development"
	Production  = "production"
	Test        = "test"
)

const openAI = "https://api.openai.com/v1"

// SkillServer is an entry of skills with members, which only the file can have. Whoever needs the
// servers reads it.
type SkillServer struct {
	Place string // for messages, like "writ.yaml: skills[0]"
	Node  *yaml.Node
}

// skillEntries divides the entries of skills: texts stay in the list, and those with
// members are returned.
func skillEntries(list *yaml.Node, path string) (servers []SkillServer) {
	if list.Kind != yaml.SequenceNode {
		return nil // refused by the caller
	}
	texts := []*yaml.Node{}
	for i, n := range list.Content {
		entry := n
		if n.Kind == yaml.AliasNode {
			entry = n.Alias
		}
		if entry.Kind == yaml.MappingNode {
			servers = append(servers, SkillServer{Place: fmt.Sprintf("%s: skills[%d]", path, i), Node: entry})
		} else {
			texts = append(texts, n)
		}
	}
	list.Content = texts
	return servers
}
