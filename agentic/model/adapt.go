package model

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

// adaptations are the ways in which requests to a model differ from the usual ones. Each is
// learned from a refusal: servers of this API differ in what they accept, and names of models do
// not tell.
type adaptations uint32

const (
	noStreamOptions adaptations = 1 << iota
	noStream
	completionTokens
	noMaxTokens
	noTemperature
	freeChoice
	noChoice
	noParallel
	noEffort
	effortNone
	emptyThoughts
	noThoughts
	anySignature
	plainIDs
	emptyContent
	noBlanks
	strictTurns
	noImages
	noStop
	plainSchemas
)

// adaptationTable says which refusals call for which adaptation. A refusal has the words of one of
// the alternatives, in lower case; "+" joins words that must all be there. The first row counts
// that changes the refused request.
var adaptationTable = []struct {
	do      adaptations
	log     string
	refusal []string
}{
	{noStreamOptions, "no stream_options", []string{"stream_options", "include_usage"}},
	{noStream, "no stream", []string{"stream"}},
	{completionTokens, "max_completion_tokens instead of max_tokens", []string{"max_tokens"}},
	{noMaxTokens, "no limit of tokens", []string{"max_completion_tokens", "max_tokens"}},
	{noTemperature, "no temperature", []string{"temperature"}},
	{freeChoice, "tool_choice auto", []string{"tool_choice", "tool choice"}},
	{noChoice, "no tool_choice", []string{"tool_choice", "tool choice"}},
	{noParallel, "no parallel_tool_calls", []string{"parallel_tool_calls", "parallel tool"}},
	{effortNone, "reasoning_effort none beside tools", []string{"reasoning_effort+'none'"}},
	{noEffort, "no reasoning_effort", []string{"reasoning_effort", "reasoning.effort", "effort", "does not support thinking"}},
	{effortNone, "", []string{"reasoning_effort+tools"}},
	{emptyThoughts, "empty reasoning_content where there is none", []string{"reasoning_content+passed back", "reasoning_content+missing"}},
	{noThoughts, "no reasoning_content", []string{"reasoning_content", "reasoning"}},
	{anySignature, "a placeholder where thought_signature is missing", []string{"thought_signature", "thought signature", "thoughtsignature"}},
	{plainIDs, "ids of nine letters or digits", []string{"tool call id", "tool_call_id", "tool_use_id", "tool_use.id", "tool_calls+.id", "tool_calls+length"}},
	{emptyContent, "empty content instead of none", []string{"content+nil", "content+null", "content+none", "content+required", "content+missing"}},
	{noBlanks, "no empty texts", []string{"non-empty", "non-whitespace", "must not be empty", "empty content"}},
	{strictTurns, "turns in strict order", []string{"unexpected role", "role+alternate", "last role", "role+order", "consecutive"}},
	{noImages, "no images", []string{"image", "vision", "multimodal", "content type"}},
	{noStop, "no stop", []string{"stop"}},
	{plainSchemas, "plain schemas", []string{"schema", "function_declarations", "parameters", "pattern", "regex", "grammar", "$ref"}},
}

// adaptable reports whether the server has rejected the request itself.
func (f failure) adaptable() bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented,
	}, f.status)
}

// adaptation returns the adaptation that a refusal calls for, of those that change the request; 0:
// none.
func (f failure) adaptation(changes func(adaptations) bool) adaptations {
	if !f.adaptable() {
		return 0
	}
	said := strings.ToLower(f.param + " " + f.message)
	for _, row := range adaptationTable {
		refused := slices.ContainsFunc(row.refusal, func(words string) bool {
			return !slices.ContainsFunc(strings.Split(words, "+"), func(w string) bool { return !strings.Contains(said, w) })
		})
		if refused && changes(row.do) {
			return row.do
		}
	}
	return 0
}

// learned returns what earlier refusals have taught.
func (o *OpenAI) learned() adaptations { return adaptations(o.adapted.Load()) }

// learn remembers adaptations with which a request has succeeded, and logs each once.
func (o *OpenAI) learn(ctx context.Context, as adaptations) {
	fresh := as &^ adaptations(o.adapted.Or(uint32(as)))
	for _, row := range adaptationTable {
		if fresh&row.do != 0 && row.log != "" {
			o.cfg.Log.InfoContext(ctx, "requests to the model are adapted to what its server refused", slog.String("model", o.Name()), slog.String("adapted", row.log))
		}
	}
}
