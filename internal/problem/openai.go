package problem

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
)

// OpenAI is a problem in the form of OpenAI's API.
func OpenAI(p Problem) any {
	kind := "invalid_request_error"
	switch {
	case p.Status >= http.StatusInternalServerError:
		kind = "server_error"
	case p.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	}
	message := cmp.Or(p.Detail, p.Title)
	if p.Hint != "" {
		message += "; " + p.Hint
	}
	var param any
	if p.Pointer != "" {
		param = strings.ReplaceAll(p.Pointer[1:], "/", ".")
	}
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "code": p.Code, "param": param}}
}

// WithOpenAI is a problem document that clients of OpenAI's API can read, too.
func WithOpenAI(p Problem) any {
	both, _ := OpenAI(p).(map[string]any)
	raw, _ := json.Marshal(p)      // strings and numbers
	_ = json.Unmarshal(raw, &both) // has no member error
	return both
}
