package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Names of models: Strong is the one that all built-in agents use, but that
// classifier_model is for the classifier.
const (
	Strong     = "strong"
	Classifier = "classifier"
)

// Drivers of models.
const (
	DriverOpenAI  = "openai"
	DriverOffline = "offline"
)

// DefaultModel is the one of OpenAI's where there is a key of OpenAI's and no model is
// named.
const DefaultModel = "gpt-4.1"

// OpenAI's own variables: their clients read them, too.
const (
	openAIKey = "OPENAI_API_KEY"
	openAIURL = "OPENAI_BASE_URL"
)

// Model is one entry of models.
type Model struct {
	Driver     string
	Name       string             // as its server knows it
	URL        string             // base URL of an OpenAI-compatible API
	Key        string             // in the file ${VARIABLE}; from ModelsOf on the key itself
	KeyFile    string             // a file with the key
	TimeoutSec int                // without a byte from the server; 0: the driver's default
	Fallback   []string           // models to ask, in turn, where this one gives no answer
	Context    int                // tokens that one request and its reply may have; 0: not known
	Price      map[string]float64 // of a million tokens: input, cached, output
	MaxTokens  int                // of a reply: the default, and the most that agents may ask for
	Effort     string             // of thinking, likewise
	Parallel   *bool              // whether a reply may have several calls; agents may only forbid it
	Images     bool               // it takes images of results
	Extra      map[string]any     // further members of each request
}

// memberNames in the order of the page.
var memberNames = []string{"driver", "name", "url", "key", "key_file", "timeout_sec", "context_tokens", "fallback", "price", "max_tokens", "effort", "parallel_calls", "images", "extra_body"}

func membersOf(m *Model) map[string]any {
	return map[string]any{
		"driver": &m.Driver, "name": &m.Name, "url": &m.URL, "key": &m.Key, "key_file": &m.KeyFile, "timeout_sec": &m.TimeoutSec, "fallback": &m.Fallback,
		"context_tokens": &m.Context, "price": &m.Price, "max_tokens": &m.MaxTokens, "effort": &m.Effort, "parallel_calls": &m.Parallel, "images": &m.Images, "extra_body": &m.Extra,
	}
}

// decodeModels reads the key models.
func decodeModels(doc yaml.Node) (map[string]Model, error) {
	var entries map[string]map[string]yaml.Node
	if err := doc.Decode(&entries); err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	all := make(map[string]Model, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		var m Model
		to := membersOf(&m)
		for _, member := range slices.Sorted(maps.Keys(entries[name])) {
			value := entries[name][member]
			if to[member] == nil {
				return nil, fmt.Errorf("line %d: models.%s.%s: there is no such member; there are %s", value.Line, name, member, strings.Join(memberNames, ", "))
			}
			if err := value.Decode(to[member]); err != nil {
				return nil, fmt.Errorf("models.%s.%s: %w", name, member, err)
			}
		}
		if member, err := m.wrong(); err != nil {
			return nil, fmt.Errorf("models.%s.%s: %w", name, member, err)
		}
		all[name] = m
	}
	return all, checkFallbacks(all)
}

var (
	variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

	errPlainKey = errors.New("a key does not belong in this file: write ${VARIABLE} and set that variable, or say where it is with file:, cmd: or key_file")
)

// wrong finds the member at fault.
func (m Model) wrong() (member string, err error) {
	given := map[string]bool{
		"name": m.Name != "", "url": m.URL != "", "key": m.Key != "", "key_file": m.KeyFile != "",
		"timeout_sec": m.TimeoutSec != 0, "context_tokens": m.Context != 0, "fallback": len(m.Fallback) > 0, "price": m.Price != nil,
		"max_tokens": m.MaxTokens != 0, "effort": m.Effort != "", "parallel_calls": m.Parallel != nil, "images": m.Images, "extra_body": m.Extra != nil,
	}
	takes := memberNames
	switch m.Driver {
	case DriverOpenAI:
	case DriverOffline:
		takes = nil
	default:
		return "driver", fmt.Errorf("%q is neither %s nor %s", m.Driver, DriverOpenAI, DriverOffline)
	}
	for _, member := range memberNames {
		if given[member] && !slices.Contains(takes, member) {
			return member, fmt.Errorf("the driver %s takes none: remove it", m.Driver)
		}
	}
	switch {
	case m.Driver == DriverOpenAI && m.Name == "":
		return "name", errors.New("name the model as its server does")
	case m.Key != "" && !variable.MatchString(m.Key) && !placed(m.Key):
		return "key", errPlainKey
	case m.Key != "" && m.KeyFile != "":
		return "key_file", errors.New("there is a key as well: keep one of them")
	case m.TimeoutSec < 0 || m.TimeoutSec > maxTimeoutSec:
		return "timeout_sec", fmt.Errorf("must be a number from 1 to %d", maxTimeoutSec)
	case m.Context != 0 && m.Context < minContext:
		return "context_tokens", fmt.Errorf("must be a number from %d on", minContext)
	case m.MaxTokens < 0 || m.MaxTokens > maxReply:
		return "max_tokens", fmt.Errorf("must be a number from 1 to %d", maxReply)
	case m.Effort != "" && !slices.Contains(efforts, m.Effort):
		return "effort", fmt.Errorf("must be one of %s", strings.Join(efforts, ", "))
	}
	for of, price := range m.Price {
		if !slices.Contains([]string{"input", "cached", "output"}, of) || !(price >= 0 && price <= maxPrice) {
			return "price", fmt.Errorf("name the prices of a million tokens, input, cached and output, each from 0 to %d", maxPrice)
		}
	}
	for name := range m.Extra {
		if !memberName.MatchString(name) || slices.Contains(ownMembers, name) {
			return "extra_body", fmt.Errorf("%s cannot be set here: remove it", name)
		}
	}
	return "", nil
}

var (
	efforts    = []string{"low", "medium", "high"}
	memberName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	// ownMembers of a request are writ's: what is said, what may be called, and by which model.
	ownMembers = []string{
		"messages", "model", "models", "tools", "tool_choice", "functions", "function_call", "store", "web_search_options", "plugins", "mcp_servers",
		"stream", "stream_options", "n",
	}
)

const maxReply = 1_000_000

const maxPrice = 1_000_000

const maxTimeoutSec = 3600

const minContext = 4000 // the prompts of agents alone have some thousand

// checkFallbacks: every fallback is there, and none leads back to where it came from.
func checkFallbacks(all map[string]Model) error {
	if _, there := all[Strong]; !there && len(all) > 0 {
		return fmt.Errorf("models: name one of them %s: that is the model that agents use", Strong)
	}
	used := map[string]bool{}
	var follow func(path []string) error
	follow = func(path []string) error {
		name := path[len(path)-1]
		used[name] = true
		for _, next := range all[name].Fallback {
			at := "models." + name + ".fallback"
			if _, there := all[next]; !there {
				return fmt.Errorf("%s: there is no model %q: add it to models, or remove it here", at, next)
			}
			on := append(slices.Clone(path), next)
			if slices.Contains(path, next) {
				return fmt.Errorf("%s: %s goes in a circle: remove one of them", at, strings.Join(on, " → "))
			}
			if used[next] {
				continue
			}
			if err := follow(on); err != nil {
				return err
			}
		}
		return nil
	}
	if err := follow([]string{Strong}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) { // agents may name the others
		if !used[name] {
			if err := follow([]string{name}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ModelsOf returns Strong, its fallback, and the other models of the file, which agents may name,
// with their URLs and keys. The settings model, model_url and model_key override the file's entry
// for Strong. OpenAI's own key is sent to no URL but OpenAI's own.
func (c Config) ModelsOf(getenv func(string) string) (map[string]Model, error) {
	all := map[string]Model{}
	var add func(name string, m Model) error
	add = func(name string, m Model) error {
		if m.Driver == DriverOpenAI {
			usual := cmp.Or(getenv(openAIURL), openAI)
			m.URL = cmp.Or(m.URL, usual)
			key, member, err := m.key(getenv)
			if err != nil {
				return fmt.Errorf("models.%s.%s: %w", name, member, err)
			}
			if key == "" && m.URL == usual {
				key = getenv(openAIKey)
			}
			m.Key = strings.TrimSpace(key)
		}
		all[name] = m
		for _, next := range m.Fallback {
			if _, there := all[next]; there {
				continue
			}
			if err := add(next, c.Models[next]); err != nil {
				return err
			}
		}
		return nil
	}
	err := add(Strong, c.strong(getenv(openAIKey) != ""))
	if m := all[Strong]; err == nil && c.ClassifierModel != "" && m.Driver == DriverOpenAI {
		m.Name, m.Fallback, m.Price = c.ClassifierModel, []string{Strong}, nil
		all[Classifier] = m
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if _, there := all[name]; !there && err == nil && c.Model != DriverOffline {
			err = add(name, c.Models[name])
		}
	}
	return all, err
}

// strong is the model of that name. keyed reports whether there is an OpenAI key.
func (c Config) strong(keyed bool) Model {
	m, named := c.Models[Strong]
	model, remote := strings.CutPrefix(c.Model, "openai:")
	switch {
	case remote && m.Driver != DriverOpenAI:
		m = Model{Driver: DriverOpenAI, Name: model}
	case remote:
		m.Name = model
	case c.Model == "" && named:
	case c.Model == "" && keyed && c.ModelURL == "":
		m = Model{Driver: DriverOpenAI, Name: DefaultModel}
	default:
		return Model{Driver: DriverOffline}
	}
	if m.Driver == DriverOpenAI && c.ModelURL != "" && c.ModelURL != m.URL {
		m.URL, m.Key, m.KeyFile = c.ModelURL, "", "" // the key of one server is nothing for another
	}
	if m.Driver == DriverOpenAI && c.ModelKey != "" {
		m.Key, m.KeyFile = c.ModelKey, ""
	}
	return m
}

// key is the model's key, read from the place that the file names. member is the one at fault.
func (m Model) key(getenv func(string) string) (key, member string, err error) {
	if m.KeyFile != "" {
		raw, err := os.ReadFile(m.KeyFile)
		if err == nil && strings.TrimSpace(string(raw)) == "" {
			err = fmt.Errorf("%s is empty: write the key into it", m.KeyFile)
		}
		return string(raw), "key_file", err
	}
	name := variable.FindStringSubmatch(m.Key)
	if name == nil { // none, or that of model_key
		return m.Key, "key", nil
	}
	if key = getenv(name[1]); key == "" {
		err = fmt.Errorf("the variable %s is not set: set it, or remove the key if the server wants none", name[1])
	}
	return key, "key", err
}
