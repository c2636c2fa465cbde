package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/internal/config"
)

// TestSkillServersOfFile: errors name the entry, each server has a name of its own, and the files of
// secrets are known, so that no skill server sees them.
func TestSkillServersOfFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(entries ...string) (c config.Config) {
		for _, text := range entries {
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
				t.Fatal(err)
			}
			c.SkillServers = append(c.SkillServers, config.SkillServer{Place: fmt.Sprintf("writ.yaml: skills[%d]", len(c.SkillServers)), Node: doc.Content[0]})
		}
		return c
	}
	none := func(string) string { return "" }
	list, files, err := skillServers(of("{name: a, url: https://a/, headers: {X: {file: "+secret+"}}}", "{name: b, command: [server]}"), none)
	if err != nil || len(list) != 2 || len(files) != 1 || files[0] != secret {
		t.Errorf("%+v, %v, %v", list, files, err)
	}
	for want, entries := range map[string][]string{
		`configuration writ.yaml: skills[1].name: "a" is the name of writ.yaml: skills[0] already: give each`: {"{name: a, url: https://a/}", "{name: a, url: https://b/}"},
		"configuration writ.yaml: skills[0].headers.X: the variable NO_SUCH is not set":                       {`{name: a, url: https://a/, headers: {X: "${NO_SUCH}"}}`},
	} {
		if _, _, err := skillServers(of(entries...), none); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: error = %v, want %q", entries, err, want)
		}
	}
}
