package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resolved loads a file under variables, with its secrets.
func resolved(t *testing.T, text string, env map[string]string) (Config, error) {
	t.Helper()
	return loaded(t, text, env).Resolve(func(name string) string { return env[name] }, Every)
}

func secretIn(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSecrets: every setting that is a secret can be in a file or come from a command, of
// which no shell reads anything.
func TestSecrets(t *testing.T) {
	path := secretIn(t, "s3cret with blanks\n")
	n := 0
	for _, s := range Settings {
		if !s.Secret {
			continue
		}
		n++
		for _, at := range []string{"file:" + path, "cmd:cat " + path} {
			c, err := resolved(t, "", map[string]string{s.Variables()[0]: at})
			if err != nil {
				t.Errorf("%s: %v", at, err)
			}
			if got := *s.Bind(&c).(*string); got != "s3cret with blanks" {
				t.Errorf("%s of %s: %q", s.Name, at, got)
			}
			if want := []string{path}; strings.HasPrefix(at, "file:") && !cmp.Equal(want, c.Secrets()) {
				t.Errorf("%s: skill servers could read %v", s.Name, c.Secrets())
			}
		}
	}
	if n < 7 {
		t.Errorf("%d secrets: too few", n)
	}
	c, err := resolved(t, "", map[string]string{"WRIT_MODEL_KEY": "cmd:echo $HOME;whoami `id`"})
	if err != nil || c.ModelKey != "$HOME;whoami `id`" {
		t.Errorf("%q, %v: a shell has read it", c.ModelKey, err)
	}
	c, err = resolved(t, "models:\n  strong:\n    driver: openai\n    name: m\n    key: file:"+path+"\n", nil)
	if err != nil || c.Models[Strong].Key != "s3cret with blanks" {
		t.Errorf("key of a model: %+v, %v", c.Models, err)
	}
	if c, err = resolved(t, "", map[string]string{"WRIT_MODEL_KEY": "plain"}); err != nil || c.ModelKey != "plain" {
		t.Errorf("%q, %v", c.ModelKey, err)
	}
	if c = loaded(t, "", map[string]string{"WRIT_MODEL_KEY": "cmd:false"}); c.ModelKey != "cmd:false" {
		t.Errorf("Load has run a command: %q", c.ModelKey)
	}
}

// TestSecretsThatAreNone: errors name the setting and the remedy, and never the data read.
func TestSecretsThatAreNone(t *testing.T) {
	long := secretIn(t, strings.Repeat("hidden", maxSecret))
	for at, want := range map[string]string{
		"file:/does/not/exist":               "name a file that writ may read",
		"file:" + t.TempDir():                "is no regular file",
		"file:" + secretIn(t, "\n"):          "there is nothing",
		"file:" + secretIn(t, "hidden\nand"): "more than one line",
		"file:" + long:                       "more than 65536 bytes",
		"cmd:cat " + long:                    "more than 65536 bytes",
		"cmd:":                               "has no command",
		"cmd:no-such-program-here":           "run the command by hand",
		"cmd:cat " + long + " /hidden":       "more than 65536 bytes",
		"cmd:cat /does/not/hidden-exist":     "run the command by hand",
		"cmd:true":                           "there is nothing",
	} {
		_, err := resolved(t, "", map[string]string{"SLACK_BOT_TOKEN": at})
		if err == nil || !strings.HasPrefix(err.Error(), "SLACK_BOT_TOKEN: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", at, err)
		}
		if _, err := resolved(t, "slack_token: '"+at+"'", nil); err == nil || !strings.HasPrefix(err.Error(), "slack_token: ") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestVariablesOfOthers: what other programs' variables mean here, and that none of them
// keeps writ from starting.
func TestVariablesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want func(*Config)
	}{
		"nothing":           {nil, func(*Config) {}},
		"node development":  {map[string]string{"NODE_ENV": "development"}, func(*Config) {}},
		"node test":         {map[string]string{"NODE_ENV": "test"}, func(c *Config) { c.Environment = Test }},
		"node production":   {map[string]string{"NODE_ENV": "production"}, func(c *Config) { c.Environment = Production }},
		"node staging":      {map[string]string{"NODE_ENV": "staging"}, func(c *Config) { c.Environment = Production }},
		"ours counts":       {map[string]string{"NODE_ENV": "test", "WRIT_ENVIRONMENT": "production"}, func(c *Config) { c.Environment = Production }},
		"a database":        {map[string]string{"FIRESTORE_DATABASE": "sales"}, func(c *Config) { c.DocumentsPrefix = "sales-" }},
		"the database":      {map[string]string{"FIRESTORE_DATABASE": "(default)"}, func(*Config) {}},
		"a model":           {map[string]string{"VERTEX_AI_MODEL": "gemini-2.0-flash"}, func(c *Config) { c.ClassifierModel = "gemini-2.0-flash" }},
		"a cloud":           {map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_REGION": "r", "VERTEX_AI_LOCATION": "l"}, func(*Config) {}},
		"a key":             {map[string]string{"API_KEY": "k"}, func(c *Config) { c.BootstrapKey = "k" }},
		"where a key is":    {map[string]string{"API_KEY": "k", "API_KEY_SECRET_NAME": "cmd:echo x"}, func(c *Config) { c.BootstrapKey = "x" }},
		"a token":           {map[string]string{"SLACK_BOT_TOKEN": "xoxb-1"}, func(c *Config) { c.SlackToken = "xoxb-1" }},
		"a folder of agent": {map[string]string{"P8_SCHEMA_DIR": ".schema"}, func(c *Config) { c.Agents = ".schema" }},
	} {
		want := Default()
		c.want(&want)
		got, err := resolved(t, "", c.env)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, got, values); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if _, err := resolved(t, "", map[string]string{"API_KEY_SECRET_NAME": "my-secret"}); err == nil ||
		!strings.Contains(err.Error(), "cmd:gcloud secrets versions access latest --secret=NAME --project=PROJECT") {
		t.Errorf("the name of a secret alone: %v", err)
	}
	if err := loaded(t, "", map[string]string{"WRIT_ENVIRONMENT": "staging"}).Validate(); err == nil || !strings.Contains(err.Error(), "environment: \"staging\" is none of") {
		t.Error(err)
	}
}

// TestClassifierModel: it has the server and key of the model strong, and falls back to it.
func TestClassifierModel(t *testing.T) {
	env := map[string]string{"VERTEX_AI_MODEL": "gemini-2.0-flash", "WRIT_MODEL": "openai:big", "WRIT_MODEL_URL": "https://m.example/v1", "WRIT_MODEL_KEY": "k"}
	all, err := loaded(t, "", env).ModelsOf(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	want := Model{Driver: DriverOpenAI, Name: "gemini-2.0-flash", URL: "https://m.example/v1", Key: "k", Fallback: []string{Strong}}
	if d := cmp.Diff(want, all[Classifier]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	none := func(string) string { return "" }
	if all, err = loaded(t, "classifier_model: small", nil).ModelsOf(none); err != nil || len(all) != 1 {
		t.Errorf("without a server: %v, %v", all, err)
	}
}

// TestNeededSecrets: a command of a secret runs only for who needs the secret.
func TestNeededSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "models:\n  strong: {driver: openai, name: m, key: 'cmd:touch ran-models'}\n"
	for _, s := range Settings {
		if s.Secret && s.Name != "model_key" {
			text += s.Name + ": 'cmd:touch ran-" + s.Name + "'\n"
		}
	}
	none := func(string) string { return "" }
	ran := func() []string {
		names, err := filepath.Glob("ran-*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		return names
	}
	if err := os.WriteFile("writ.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load("", none)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(none); err != nil || len(ran()) != 0 {
		t.Errorf("for no secret: %v", err)
	}
	for _, name := range []string{"documents_auth", "slack_token"} {
		_, err := c.Resolve(none, name)
		if got := ran(); err == nil || !cmp.Equal([]string{"ran-" + name}, got) { // it prints nothing, which is no secret
			t.Errorf("for %s: %v ran, %v", name, got, err)
		}
	}
}
