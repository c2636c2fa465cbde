package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const everyMember = `models:
  strong: {driver: openai, name: large, url: https://models.example/v1, key: "${LARGE}", timeout_sec: 30, fallback: [spare, none], price: {input: 2, output: 8.5}}
  spare: {driver: openai, name: small, key_file: KEY, fallback: [none]}
  none: {driver: offline}
`

// TestModelsOf: the models of the file, and the settings that override them.
func TestModelsOf(t *testing.T) {
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte("sk-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	three := strings.ReplaceAll(everyMember, "KEY", keyFile)
	spare := Model{Driver: "openai", Name: "small", URL: openAI, Key: "sk-file", KeyFile: keyFile, Fallback: []string{"none"}}
	strong := Model{Driver: "openai", Name: "large", URL: "https://models.example/v1", Key: "sk-large", TimeoutSec: 30, Fallback: []string{"spare", "none"}, Price: map[string]float64{"input": 2, "output": 8.5}}
	with := func(change func(*Model)) map[string]Model {
		m := strong
		change(&m)
		return map[string]Model{"strong": m, "spare": spare, "none": {Driver: "offline"}}
	}
	only := func(m Model) map[string]Model { return map[string]Model{"strong": m} }
	for _, tt := range []struct {
		name, file string
		env        map[string]string
		want       map[string]Model
	}{
		{"nothing", "", nil, only(Model{Driver: "offline"})},
		{"no models", "models:\n", nil, only(Model{Driver: "offline"})},
		{"OpenAI's key", "", map[string]string{"OPENAI_API_KEY": "sk-o"}, only(Model{Driver: "openai", Name: DefaultModel, URL: openAI, Key: "sk-o"})},
		{
			"OpenAI's key and URL", "",
			map[string]string{"OPENAI_API_KEY": "sk-o", "OPENAI_BASE_URL": "https://o.example/v1"},
			only(Model{Driver: "openai", Name: DefaultModel, URL: "https://o.example/v1", Key: "sk-o"}),
		},
		{"OpenAI's key and offline", "model: offline\n", map[string]string{"OPENAI_API_KEY": "sk-o"}, only(Model{Driver: "offline"})},
		{
			"OpenAI's key and another URL", "model: openai:m\nmodel_url: http://127.0.0.1:1/v1\n",
			map[string]string{"OPENAI_API_KEY": "sk-o"},
			only(Model{Driver: "openai", Name: "m", URL: "http://127.0.0.1:1/v1"}),
		},
		{
			"OpenAI's key and another URL in models", "models: {strong: {driver: openai, name: m, url: \"http://127.0.0.1:1/v1\"}}\n",
			map[string]string{"OPENAI_API_KEY": "sk-o"},
			only(Model{Driver: "openai", Name: "m", URL: "http://127.0.0.1:1/v1"}),
		},
		{
			"the settings", "model: openai:m\nmodel_url: http://127.0.0.1:1/v1\nmodel_key: k\n",
			map[string]string{"OPENAI_API_KEY": "sk-o"},
			only(Model{Driver: "openai", Name: "m", URL: "http://127.0.0.1:1/v1", Key: "k"}),
		},
		{"the file", three, map[string]string{"LARGE": "sk-large", "OPENAI_API_KEY": "sk-o"}, with(func(*Model) {})},
		{"the file and a name", three, map[string]string{"LARGE": "sk-large", "WRIT_MODEL": "openai:x"}, with(func(m *Model) { m.Name = "x" })},
		{"the file and a key", three, map[string]string{"WRIT_MODEL_KEY": "k"}, with(func(m *Model) { m.Key = "k" })},
		{
			"the file and a URL, which the file's key is not for", three,
			map[string]string{"WRIT_MODEL_URL": "https://x.example/v1"},
			with(func(m *Model) { m.URL, m.Key = "https://x.example/v1", "" }),
		},
		{"the file and offline", three, map[string]string{"WRIT_MODEL": "offline"}, only(Model{Driver: "offline"})},
		{
			"an offline one and a name", "models: {strong: {driver: offline}}\n",
			map[string]string{"WRIT_MODEL": "openai:x"},
			only(Model{Driver: "openai", Name: "x", URL: openAI}),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := loaded(t, tt.file, tt.env)
			got, err := c.ModelsOf(func(name string) string { return tt.env[name] })
			if d := cmp.Diff(tt.want, got); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
			if tt.file == three && !cmp.Equal(c.Secrets(), []string{keyFile}) {
				t.Errorf("secrets %q", c.Secrets())
			}
		})
	}
}

// TestModelsRefused: each mistake is named by its key, with what to do.
func TestModelsRefused(t *testing.T) {
	for _, tt := range []struct{ models, says string }{
		{"3", "models: "},
		{"{strong: openai}", "models: "},
		{"{strong: {}}", `models.strong.driver: "" is neither openai nor offline`},
		{"{strong: {driver: gemini}}", `models.strong.driver: "gemini" is neither openai nor offline`},
		{"{strong: {driver: openai}}", "models.strong.name: name the model"},
		{"{strong: {driver: openai, name: m, context_size: 8}}", "line 1: models.strong.context_size: there is no such member; there are driver, name,"},
		{"{strong: {driver: openai, name: [m]}}", "models.strong.name: "},
		{"{strong: {driver: openai, name: m, timeout_sec: long}}", "models.strong.timeout_sec: "},
		{"{strong: {driver: openai, name: m, timeout_sec: -1}}", "models.strong.timeout_sec: must be a number from 1"},
		{"{strong: {driver: openai, name: m, context_tokens: 8}}", "models.strong.context_tokens: must be a number from 4000"},
		{"{strong: {driver: openai, name: m, key: sk-secret}}", "models.strong.key: a key does not belong in this file: write ${VARIABLE}"},
		{"{strong: {driver: openai, name: m, key: \"${A}\", key_file: f}}", "models.strong.key_file: there is a key as well"},
		{"{strong: {driver: offline, name: m}}", "models.strong.name: the driver offline takes none"},
		{"{strong: {driver: openai, name: m, price: {imput: 2}}}", "models.strong.price: name the prices of a million tokens, input, cached and output, each from 0"},
		{"{strong: {driver: openai, name: m, price: {input: -2}}}", "models.strong.price: name the prices"},
		{"{strong: {driver: openai, name: m, price: {input: .nan}}}", "models.strong.price: name the prices"},
		{"{strong: {driver: openai, name: m, price: {input: high}}}", "models.strong.price: "},
		{"{strong: {driver: offline, price: {}}}", "models.strong.price: the driver offline takes none"},
		{"{strong: {driver: offline, fallback: [x]}}", "models.strong.fallback: the driver offline takes none"},
		{"{spare: {driver: offline}}", "models: name one of them strong"},
		{"{strong: {driver: openai, name: m, fallback: [spare]}}", `models.strong.fallback: there is no model "spare"`},
		{"{strong: {driver: openai, name: m, fallback: [strong]}}", "models.strong.fallback: strong → strong goes in a circle"},
		{
			"{strong: {driver: openai, name: m, fallback: [a]}, a: {driver: openai, name: m, fallback: [b]}, b: {driver: openai, name: m, fallback: [a]}}",
			"models.b.fallback: strong → a → b → a goes in a circle",
		},
		{"{strong: {driver: offline}, a: {driver: offline, fallback: []}, b: {driver: openai, name: m, fallback: [b]}}", "models.b.fallback: b → b goes in a circle"},
		{"{strong: {driver: openai, name: m, max_tokens: -1}}", "models.strong.max_tokens: must be a number from 1"},
		{"{strong: {driver: openai, name: m, effort: much}}", "models.strong.effort: must be one of low, medium, high"},
		{"{strong: {driver: openai, name: m, parallel_calls: 3}}", "models.strong.parallel_calls: "},
		{"{strong: {driver: openai, name: m, extra_body: [3]}}", "models.strong.extra_body: "},
		{"{strong: {driver: offline, effort: low}}", "models.strong.effort: the driver offline takes none"},
		{"{strong: {driver: offline}}\nmodel: openai:m", "models.strong says what model, model_url and model_key say"},
	} {
		_, err := load(t, "models: "+tt.models+"\n", nil)
		if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "writ.yaml") || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: error %v, which must name the file and say %q", tt.models, err, tt.says)
		}
	}
}

// TestExtraBody: an operator may add members to each request, but none that says what is asked, of
// whom, and what may be called. A name is no path into another member.
func TestExtraBody(t *testing.T) {
	model := func(extra string) string {
		return "models: {strong: {driver: openai, name: m, max_tokens: 1000, effort: low, parallel_calls: false, extra_body: {" + extra + "}}, spare: {driver: openai, name: s}}\n"
	}
	c := loaded(t, model("top_k: 3, thinking: {type: disabled}, provider: {order: [a]}"), nil)
	m := c.Models[Strong]
	if m.Extra["top_k"] != 3 || m.MaxTokens != 1000 || m.Effort != "low" || *m.Parallel {
		t.Errorf("%+v", m)
	}
	for _, name := range []string{"messages", "model", "tools", "tool_choice", "store", "web_search_options", "plugins", "mcp_servers", "stream", "messages.0", `"messages.-1.content"`, `"a\\.b"`, `""`, "A"} {
		if _, err := load(t, model(name+": 1"), nil); err == nil || !strings.Contains(err.Error(), "models.strong.extra_body: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestModelKeysMissing: a missing key is reported when the models are needed; other
// commands read the same file.
func TestModelKeysMissing(t *testing.T) {
	for _, tt := range []struct{ member, says string }{
		{`key: "${UNSET}"`, "models.strong.key: the variable UNSET is not set: set it, or remove the key"},
		{"key_file: /no/such/file", "models.strong.key_file: open /no/such/file"},
		{"key_file: /dev/null", "models.strong.key_file: /dev/null is empty"},
	} {
		c := loaded(t, "models: {strong: {driver: openai, name: m, "+tt.member+"}}\n", nil)
		_, err := c.ModelsOf(func(string) string { return "" })
		if err == nil || !strings.HasPrefix(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %q", tt.member, err, tt.says)
		}
	}
}
