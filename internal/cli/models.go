package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/upkeep"
)

// models are those of a configuration, ready to be asked.
type models struct {
	strong model.Model            // with its fallback
	named  map[string]model.Model // likewise, by their names
	list   []namedModel
	prices map[string]catalog.Price // by driver:model
}

// namedModel is one model of the configuration by itself.
type namedModel struct {
	name, at string
	model    model.Model
}

// newModels makes the models of a configuration, which was read from file. sent gets the body of
// each request to a server; nil: unused.
func newModels(c config.Config, file string, env func(string) string, sent func([]byte)) (*models, error) {
	m, err := makeModels(c, env, sent)
	switch {
	case err == nil:
		return m, nil
	case len(c.Models) == 0: // of flags and variables
		return nil, usage(fmt.Errorf("model: %w", err))
	}
	return nil, malformed(fmt.Errorf("configuration %s: %w", file, err))
}

func makeModels(c config.Config, env func(string) string, sent func([]byte)) (*models, error) {
	specs, err := c.ModelsOf(env)
	if err != nil {
		return nil, err
	}
	made := map[string]model.Model{}
	m := &models{named: made, prices: map[string]catalog.Price{}}
	var with func(name string) (model.Model, error)
	with = func(name string) (model.Model, error) {
		if it, there := made[name]; there {
			return it, nil
		}
		spec := specs[name]
		first, err := newModel(spec, sent)
		if err != nil {
			return nil, fmt.Errorf("models.%s.url: %w", name, err) // Validate and Load have checked the rest
		}
		m.list = append(m.list, namedModel{name, spec.URL, first})
		if spec.Price != nil {
			m.prices[first.Name()] = catalog.Price{Input: spec.Price["input"], Output: spec.Price["output"]}
		}
		var others []model.Model
		for _, next := range spec.Fallback {
			other, err := with(next)
			if err != nil {
				return nil, err
			}
			others = append(others, other)
		}
		made[name] = model.Fallback(first, others...)
		return made[name], nil
	}
	m.strong, err = with(config.Strong)
	for _, name := range slices.Sorted(maps.Keys(specs)) { // the others are for agents that name them
		if err == nil {
			_, err = with(name)
		}
	}
	return m, err
}

func newModel(spec config.Model, sent func([]byte)) (model.Model, error) {
	if spec.Driver == config.DriverOffline {
		return offline.Model{}, nil
	}
	return model.NewOpenAI(model.OpenAIConfig{
		BaseURL: spec.URL, APIKey: spec.Key, Model: spec.Name, Timeout: time.Duration(spec.TimeoutSec) * time.Second, ContextTokens: spec.Context, Sent: sent,
	})
}

// remote reports whether requests go to a server.
func (m *models) remote() bool {
	return slices.ContainsFunc(m.list, func(one namedModel) bool { _, is := one.model.(*model.OpenAI); return is })
}

// checkTime bounds the question to one model.
const checkTime = 30 * time.Second

// check asks all models concurrently whether they answer. It returns one finding for each, in the
// order of list.
func (m *models) check(ctx context.Context) []upkeep.Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	list := make([]upkeep.Finding, len(m.list))
	var asking sync.WaitGroup
	for i, one := range m.list {
		asking.Go(func() {
			list[i] = one.named()
			if server, remote := one.model.(*model.OpenAI); remote {
				one.ask(ctx, server, &list[i])
			}
		})
	}
	asking.Wait()
	return list
}

// named names the model, without a request.
func (m namedModel) named() upkeep.Finding {
	f := upkeep.Finding{Check: "model:" + m.name, Level: upkeep.OK, Found: m.model.Name()}
	if _, remote := m.model.(*model.OpenAI); remote {
		f.Found += " at " + m.at
		return f
	}
	f.Found += ", a demonstration: it understands only the words of the skills"
	f.Do = "for a language model, set OPENAI_API_KEY or see docs/configuration.md#models"
	return f
}

// ask sends one small request with a tool, since agents cannot work without.
func (m namedModel) ask(ctx context.Context, server *model.OpenAI, f *upkeep.Finding) {
	_, err := server.Respond(ctx, model.Request{
		Agent: "doctor", Messages: []model.Message{{Role: model.RoleUser, Text: "Are you ready?"}},
		Tools: []model.Tool{{Name: "ready", Description: "Says that you are ready.", Schema: []byte(`{"type":"object","properties":{}}`)}},
	}, nil)
	if err != nil {
		f.Level, f.Do = upkeep.Warn, m.remedy(err)
		f.Found += " does not answer: " + model.Detail(err)
	}
}

// remedy is the advice for a failure.
func (m namedModel) remedy(err error) string {
	var e *model.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case e.Status == 0:
		return fmt.Sprintf("look whether the server runs, and whether models.%s.url (or WRIT_MODEL_URL, OPENAI_BASE_URL) is right", m.name)
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return fmt.Sprintf("give it the right key: models.%s.key (or WRIT_MODEL_KEY, OPENAI_API_KEY)", m.name)
	case e.Status == http.StatusNotFound:
		return fmt.Sprintf("name a model that this server has: models.%s.name (or WRIT_MODEL); and look at the url, which often ends in /v1", m.name)
	case e.Status == http.StatusPaymentRequired || e.Status == http.StatusTooManyRequests:
		return fmt.Sprintf("wait, or look at the limits and the credit of the account there; models.%s.fallback can name another model", m.name)
	case e.Status >= http.StatusInternalServerError:
		return fmt.Sprintf("wait; models.%s.fallback can name another model", m.name)
	}
	return fmt.Sprintf("look at models.%s and at what its server documents; a model must be able to call tools", m.name)
}

func announceModel(std IO, f upkeep.Finding) {
	fmt.Fprintf(std.Err, "%s: %s\n", strings.Replace(f.Check, ":", " ", 1), printable(f.Found))
	if f.Do != "" {
		fmt.Fprintf(std.Err, "→ %s\n", printable(f.Do))
	}
}
