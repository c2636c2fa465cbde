package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestSettings: each key of Config is bound by one row, with a default of its type
// and something said about it; no name or variable stands twice. Models is no single
// value and has no row, nor have SecretFiles and File, which no file says, and SkillServers, which
// come with the skills.
func TestSettings(t *testing.T) {
	seen := map[string]bool{}
	once := func(name string) {
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		seen[name] = true
	}
	var c Config
	bound := map[any]bool{}
	for _, s := range Settings {
		once(s.Name)
		for _, name := range s.Variables() {
			once(name)
		}
		if s.Help == "" {
			t.Errorf("%s: nothing is said about it", s.Name)
		}
		at := s.Bind(&c)
		if value := reflect.TypeOf(at).Elem(); s.Default != nil && reflect.TypeOf(s.Default) != value {
			t.Errorf("%s: the default is a %T, the value a %v", s.Name, s.Default, value)
		}
		bound[at] = true
	}
	all := reflect.ValueOf(&c).Elem()
	bound[&c.OIDC], bound[&c.Notices], bound[&c.Models], bound[&c.SecretFiles], bound[&c.SkillServers], bound[&c.Variables], bound[&c.File] = true, true, true, true, true, true, true
	if len(bound) != all.NumField() {
		t.Errorf("rows bind %d of %d fields", len(bound), all.NumField())
	}
	for i := range all.NumField() {
		if at := all.Field(i).Addr().Interface(); !bound[at] {
			t.Errorf("no row is of %s", all.Type().Field(i).Name)
		}
	}
}

// TestSettingsNameDefaults: the page names what the code takes where nothing is set.
func TestSettingsNameDefaults(t *testing.T) {
	for field, value := range map[string]string{"Model": "openai:" + DefaultModel, "ModelURL": openAI} {
		i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Field == field })
		if !strings.Contains(Settings[i].More, "`"+value+"`") {
			t.Errorf("%s does not name %s: %s", Settings[i].Name, value, Settings[i].More)
		}
	}
}
