package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/upkeep"
)

// models are those of a configuration, ready to be asked.
type models struct {
	strong model.Model            // with what it falls back to
	named  map[string]model.Model // likewise, by their names
	list   []namedModel
	prices map[string]catalog.Price // by driver:model
}

// namedModel is one model of the configuration by itself.
type namedModel struct {
	name, at string
	model    model.Model
}

// newModels makes the models of a configuration, which was read from file. sent gets the
// body of each request to a server; nil: nobody looks.
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
			return nil, fmt.Errorf("models.%s.url: %w", name, err) // Validate and Load have seen the rest
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
	switch spec.Driver {
	case config.DriverOpenAI:
		return model.NewOpenAI(model.OpenAIConfig{
			BaseURL: spec.URL, APIKey: spec.Key, Model: spec.Name, Timeout: time.Duration(spec.TimeoutSec) * time.Second, ContextTokens: spec.Context, Sent: sent,
		})
	case config.DriverRecorded:
		if info, err := os.Stat(spec.URL); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is no directory: name the one that --record filled", spec.URL)
		}
		return model.Recorded(os.DirFS(spec.URL)), nil
	default:
		return offline.Model{}, nil
	}
}

// remote says whether requests go to a server.
func (m *models) remote() bool {
	return slices.ContainsFunc(m.list, func(one namedModel) bool { _, is := one.model.(*model.OpenAI); return is })
}

// recording is m, whose replies are kept in a directory.
func recording(m model.Model, dir string) (model.Model, error) {
	if err := durable.MkdirAll(dir); err != nil {
		return nil, err
	}
	var writing sync.Mutex // of the files: a request may be made twice at once
	return model.Record(m, func(name string, content []byte) error {
		writing.Lock()
		defer writing.Unlock()
		return durable.Write(filepath.Join(dir, name), content)
	}), nil
}

// probeTime bounds the probe of one model.
const probeTime = 30 * time.Second

// probe asks all models at once what they take. There is one finding of each.
func (m *models) probe(ctx context.Context) <-chan upkeep.Finding {
	found := make(chan upkeep.Finding, len(m.list))
	for _, one := range m.list {
		go func() {
			bounded, cancel := context.WithTimeout(ctx, probeTime)
			defer cancel()
			f := one.probe(bounded)
			if ctx.Err() != nil { // the failure is ours
				f = one.asked()
			}
			found <- f
		}()
	}
	return found
}

// findings are those of probe that are there before the end of wait, in the order of list.
// Of the others only the model is told.
func (m *models) findings(probe <-chan upkeep.Finding, wait <-chan time.Time) []upkeep.Finding {
	said := map[string]upkeep.Finding{}
	for len(said) < len(m.list) {
		select {
		case f := <-probe:
			said[f.Check] = f
			continue
		case <-wait:
		}
		break
	}
	var list []upkeep.Finding
	for _, one := range m.list {
		f, there := said[one.check()]
		if !there {
			f = one.asked()
		}
		list = append(list, f)
	}
	return list
}

func (m namedModel) check() string { return "model:" + m.name }

// asked is said of a model that has not answered yet.
func (m namedModel) asked() upkeep.Finding {
	return upkeep.Finding{Check: m.check(), Level: upkeep.OK, Found: fmt.Sprintf("%s at %s is being asked what it takes", m.model.Name(), m.at)}
}

func (m namedModel) probe(ctx context.Context) upkeep.Finding {
	f := upkeep.Finding{Check: m.check(), Level: upkeep.OK, Found: m.model.Name()}
	server, remote := m.model.(*model.OpenAI)
	switch {
	case remote:
		return m.probeServer(ctx, server)
	case m.model == offline.Model{}:
		f.Found += ", a demonstration: it understands only the words of the skills"
		f.Do = "for a language model, set OPENAI_API_KEY or see docs/configuration.md#models"
	default:
		kept, err := fs.Glob(os.DirFS(m.at), "*.json")
		f.Found = fmt.Sprintf("%d recorded replies in %s, and no others", len(kept), m.at)
		if err != nil || len(kept) == 0 {
			f.Level, f.Do = upkeep.Warn, "record some with writ up --record "+m.at
		}
	}
	return f
}

func (m namedModel) probeServer(ctx context.Context, server *model.OpenAI) upkeep.Finding {
	at := server.Name() + " at " + m.at
	took, err := server.Probe(ctx)
	f := upkeep.Finding{Check: m.check(), Level: upkeep.OK, Found: at + strings.TrimPrefix(took.String(), server.Name())}
	switch {
	case err != nil:
		f.Level = upkeep.Warn
		f.Found, f.Do = at+" does not answer: "+model.Detailed(err), m.remedy(err)
	case took.Tools.Answer == model.Refused:
		f.Level = upkeep.Warn
		f.Found += ": " + took.Tools.Detail
		f.Do = "name a model that can call tools: agents cannot work without"
	}
	return f
}

// remedy is what helps against a failure.
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
	return fmt.Sprintf("look at models.%s and at what its server documents", m.name)
}

// atOnce is how long writ up waits, when it is ready, for models to say what they take.
const atOnce = 300 * time.Millisecond

func announceModel(std IO, f upkeep.Finding) {
	fmt.Fprintf(std.Err, "%s: %s\n", strings.Replace(f.Check, ":", " ", 1), printable(f.Found))
	if f.Do != "" {
		fmt.Fprintf(std.Err, "→ %s\n", printable(f.Do))
	}
}
