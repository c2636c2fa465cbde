package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/internal/config"
)

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// knownVariable reports whether writ reads a variable.
func knownVariable(name string) bool {
	return name == "HOME" || name == "OPENAI_API_KEY" || slices.ContainsFunc(config.Settings, func(s config.Setting) bool { return slices.Contains(s.Variables(), name) })
}

// TestImage: the image runs one static program as nobody in particular, has no shell, and
// is built with the Go of go.mod.
func TestImage(t *testing.T) {
	text := read(t, "deploy/Dockerfile")
	stages := regexp.MustCompile(`(?m)^FROM `).Split(text, -1)
	if len(stages) != 3 {
		t.Fatalf("%d stages", len(stages)-1)
	}
	goVersion := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "go.mod"))[1]
	for _, want := range []string{"golang:" + goVersion + "-", "CGO_ENABLED=0", "-tags nomsgpack,embedpython", "-trimpath", "./cmd/writ"} {
		if !strings.Contains(stages[1], want) {
			t.Errorf("the program is built without %s", want)
		}
	}
	for _, want := range []string{
		"gcr.io/distroless/base-debian12:nonroot\n", "\nUSER 65532:65532\n", "\nVOLUME /data\n", "\nEXPOSE 8080\n", "WRIT_LISTEN=0.0.0.0:8080", "--chown=65532:65532 --chmod=700 /out/data /data",
		`CMD ["/writ", "health"]`, "\nENTRYPOINT [\"/writ\"]\nCMD [\"up\"]\n",
	} {
		if !strings.Contains(stages[2], want) {
			t.Errorf("the image lacks %q", want)
		}
	}
	if strings.Contains(stages[2], "\nRUN ") {
		t.Error("there is no shell to run anything with")
	}
	for _, v := range regexp.MustCompile(`([A-Z_]+)=`).FindAllStringSubmatch(regexp.MustCompile(`(?m)^ENV .*$`).FindString(stages[2]), -1) {
		if !knownVariable(v[1]) {
			t.Errorf("writ reads no %s", v[1])
		}
	}
	for _, want := range []string{".*\n", "**/*.pem\n", "**/*.seed\n", "deploy\n"} {
		if !strings.Contains(read(t, ".dockerignore"), "\n"+want) {
			t.Errorf(".dockerignore lacks %q", want)
		}
	}
}

// TestCompose: what is served is served to this machine alone; stores reach nothing; no
// container may become more than it is; images have versions.
func TestCompose(t *testing.T) {
	type service struct {
		Image, User string
		Privileged  bool
		ReadOnly    bool `yaml:"read_only"`
		Environment map[string]string
		Ports       []string
		Networks    []string
		Volumes     []string
		Secrets     []string
		Dropped     []string `yaml:"cap_drop"`
		Security    []string `yaml:"security_opt"`
	}
	var file struct {
		Services map[string]service
		Networks map[string]struct{ Internal bool }
		Secrets  map[string]struct{ File string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/compose/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) != 7 {
		t.Errorf("%d services", len(file.Services))
	}
	for name, s := range file.Services {
		if s.Privileged || !slices.Contains(s.Security, "no-new-privileges:true") || name != "opensearch" && !slices.Contains(s.Dropped, "ALL") {
			t.Errorf("%s may become more than it is: %+v", name, s)
		}
		if _, tag, _ := strings.Cut(s.Image, ":"); name != "writ" && !regexp.MustCompile(`\d+\.\d+\.\d+`).MatchString(tag) {
			t.Errorf("%s: %s has no version", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to others", name, p)
			}
		}
		for _, secret := range s.Secrets {
			if !strings.HasPrefix(file.Secrets[secret].File, "./secrets/") {
				t.Errorf("%s: secret %s: %+v", name, secret, file.Secrets[secret])
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, err := os.Stat(filepath.Join(root, "deploy/compose", from)); strings.HasPrefix(from, "./") && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, store := range []string{"nats-1", "nats-2", "nats-3", "opensearch"} {
		if got := file.Services[store].Networks; !slices.Equal(got, []string{"stores"}) {
			t.Errorf("%s is in the networks %v", store, got)
		}
	}
	if !file.Networks["stores"].Internal {
		t.Error("the stores reach other networks")
	}
	writ := file.Services["writ"]
	if !writ.ReadOnly {
		t.Error("writ can write to its image")
	}
	c, err := config.Load("", func(name string) string { return writ.Environment[name] })
	if err == nil {
		err = c.Validate()
	}
	if err != nil || c.Environment != config.Production || c.BootstrapKey != "file:/run/secrets/api_key" {
		t.Errorf("%+v, %v", c, err)
	}
	for name := range writ.Environment {
		if !knownVariable(name) {
			t.Errorf("writ reads no %s", name)
		}
	}
}

// TestChartTakesNoSecret: the chart refuses each secret among the keys of writ.yaml.
func TestChartTakesNoSecret(t *testing.T) {
	schema := read(t, "deploy/helm/writ/values.schema.json")
	for _, s := range config.Settings {
		if s.Secret && !strings.Contains(schema, `"`+s.Name+`"`) {
			t.Errorf("values.schema.json does not refuse %s", s.Name)
		}
	}
}
