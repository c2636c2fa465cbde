package agentic

import (
	"context"
	"encoding/json"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
)

// renderPrefix begins the name of a tool that displays something: its server is the author of the
// schema and is never called. The arguments appear beside the answer, as a component of it.
const renderPrefix = "render_"

// component of an answer.
type component struct {
	Name  string          `json:"name"` // of the tool
	Props json.RawMessage `json:"props"`
}

// maxComponents bounds the components of one answer, as JSON.
const maxComponents = 16 << 10

func (w *worker) render(m catalog.Manifest, wire string) *tool {
	return &tool{
		Tool:  model.Tool{Name: wire, Description: visible.Cut(m.Description, maxAbout), Schema: m.InputSchema},
		check: schemas.Tolerate(m.InputSchema).Schema,
		call: func(_ context.Context, _ string, props json.RawMessage) (any, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			all := append(w.components, component{m.Tool(), compact(props)})
			if len(compact(all)) > maxComponents {
				return nil, mistaken("the components of one answer have at most %d bytes together", maxComponents)
			}
			w.components = all
			return map[string]string{"status": "shown beside your answer"}, nil
		},
	}
}

// rendered returns the components as step.finish has them.
func (w *worker) rendered() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.components) == 0 {
		return ""
	}
	return string(compact(w.components))
}

func renders(m catalog.Manifest) bool { return strings.HasPrefix(m.Tool(), renderPrefix) }
