package policies

import "context"

// ReadsMark reports whether rules of an engine read a value at a path of the input that a mark
// stands for.
func ReadsMark(ctx context.Context, e *Engine, path ...string) (bool, error) {
	in := map[string]any{"intent": map[string]any{"type": "skill.call", "args": map[string]any{"skill": "y", "input": map[string]any{reference: map[string]any{}}}}}
	_, read, err := e.watched(ctx, in, []hiddenInput{{path: path}})
	return len(read) > 0, err
}
