package model

import (
	"context"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

// Finding is whether a server takes something; where it does not, or did not say,
// Detail is why, for operators.
type Finding struct {
	Answer Answer
	Detail string
}

// Answer of a server to a probe.
type Answer string

// The answers; the zero value is Unknown.
const (
	Unknown  Answer = ""
	Accepted Answer = "accepted"
	Refused  Answer = "refused"
)

// Probed is what a server was found to take.
type Probed struct {
	Model                               string
	Tools, Streaming, Temperature, JSON Finding
	Usage                               Usage // what finding out has cost
}

// String is one line for operators.
func (p Probed) String() string {
	by := map[Answer][]string{}
	for _, f := range []struct {
		name string
		Finding
	}{{"tools", p.Tools}, {"streaming", p.Streaming}, {"temperature", p.Temperature}, {"json", p.JSON}} {
		by[f.Answer] = append(by[f.Answer], f.name)
	}
	var parts []string
	for _, a := range []struct {
		Answer
		verb string
	}{{Accepted, "takes "}, {Refused, "refuses "}, {Unknown, "did not say whether it takes "}} {
		if names := by[a.Answer]; len(names) > 0 {
			parts = append(parts, a.verb+strings.Join(names, ", "))
		}
	}
	return p.Model + " " + strings.Join(parts, "; ")
}

// Probe asks the server by small requests what it takes, each once. A temperature or
// streaming that is refused is left out of all requests from then on; tools are not,
// since agents cannot work without. An error, which is an *Error, means that the server
// does not answer at all, and then nothing was found out.
func (o *OpenAI) Probe(ctx context.Context) (Probed, error) {
	p := &probing{o: o, ctx: ctx, found: Probed{Model: o.Name()}}
	var failed *Error
	if p.found.Streaming, failed = p.ask(true, nil); p.found.Streaming.Answer == Refused {
		var plain Finding
		if plain, failed = p.ask(false, nil); plain.Answer == Accepted {
			o.noStreaming.Store(true)
			failed = nil
		}
	}
	if failed != nil {
		return Probed{Model: p.found.Model, Usage: p.found.Usage}, failed
	}
	streamed := !o.noStreaming.Load()
	p.found.Tools, _ = p.ask(streamed, func(r *openai.ChatCompletionNewParams) {
		r.ToolChoice.OfAuto = openai.String("auto")
		r.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "help", Description: openai.String("Gives help."), Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}},
		})}
	})
	p.found.JSON, _ = p.ask(streamed, func(r *openai.ChatCompletionNewParams) {
		r.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "ready", Strict: openai.Bool(true), Schema: map[string]any{
				"type": "object", "properties": map[string]any{"ready": map[string]any{"type": "boolean"}},
				"required": []string{"ready"}, "additionalProperties": false,
			},
		}}
	})
	if o.noTemperature.Load() {
		p.found.Temperature = Finding{Refused, "left out already"}
		return p.found, nil
	}
	p.found.Temperature, _ = p.ask(streamed, func(r *openai.ChatCompletionNewParams) { r.Temperature = openai.Float(0) })
	if p.found.Temperature.Answer == Refused {
		o.noTemperature.Store(true)
	}
	return p.found, nil
}

type probing struct {
	o     *OpenAI
	ctx   context.Context
	found Probed
}

// ask sends one small request with something added. A finding that is not Accepted
// comes with the error of its request.
func (p *probing) ask(streamed bool, add func(*openai.ChatCompletionNewParams)) (Finding, *Error) {
	params := openai.ChatCompletionNewParams{
		Model:    p.o.cfg.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(`Are you ready? Answer with this JSON and nothing else: {"ready":true}`)},
	}
	if add != nil {
		add(&params)
	}
	begin := p.o.now()
	got, failed := p.o.attempt(p.ctx, params, streamed, func(string) {})
	p.found.Usage.Add(Usage{InputTokens: got.in, OutputTokens: got.out, Latency: p.o.now().Sub(begin)})
	switch {
	case failed == nil, got.finish != "" && got.said == (failure{}): // what was answered does not matter
		return Finding{Answer: Accepted}, nil
	case got.said.refused(), got.unstreamed:
		return Finding{Refused, Detailed(failed)}, failed
	}
	return Finding{Unknown, Detailed(failed)}, failed
}

// refused reports whether the server found fault with what was asked for, and not
// with who asked or when.
func (f failure) refused() bool {
	switch f.status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return false
	case http.StatusNotImplemented:
		return true
	}
	return f.status >= 400 && f.status < 500 && !transientStatus(f.status)
}
