package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// reading assembles one reply, from the chunks of a stream or from a whole one.
type reading struct {
	say func(Event)
	// withdraw takes back what was said.
	withdraw func()
	tools    []Tool
	choice   Choice
	think    thinking
	text     strings.Builder
	shown    int // bytes of it
	held     int // from where it may be a call written as text; with tools only
	parts    []*callParts
	members  Members                     // that only the model can read
	texts    map[string]*strings.Builder // those of them that are texts
	size     int                         // received bytes, thinking included
	finish   string
	refused  bool
	thought  bool  // it has begun with a thought without its opening tag
	atLimit  bool  // its text reached the limit of tokens
	usage    Usage // if the server reports it

	// Of an attempt that failed:
	failure    failure
	retryAfter time.Duration // 0: unspecified
	unstreamed bool          // the server answered a streaming request without a stream
}

// callParts is a call while its pieces arrive.
type callParts struct {
	index     int64
	id, name  string
	arguments strings.Builder
	members   Members
}

// errTooLarge ends the reading of an endless reply.
var errTooLarge = fmt.Errorf("the model's reply is larger than %d bytes or %d calls", maxOutputBytes, maxCalls)

func (r *reading) chunk(c openai.ChatCompletionChunk) error {
	r.count(c.Usage)
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		r.refused = r.refused || d.Refusal != ""
		if err := r.addMessage(d.Content, d.JSON.Content.Raw(), d.RawJSON(), len(d.JSON.ExtraFields) > 0); err != nil {
			return err
		}
		for _, t := range d.ToolCalls {
			f := t.Function
			if err := r.addCall(t.Index, t.ID, f.Name, written(f.Arguments, f.JSON.Arguments.Raw()), t.RawJSON()); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
	}
	return nil
}

func (r *reading) completion(c *openai.ChatCompletion) error {
	r.count(c.Usage)
	if len(c.Choices) == 0 { // an error, despite the status
		return &ssestream.StreamError{Message: "no choices", Event: ssestream.Event{Data: []byte(c.RawJSON())}}
	}
	choice := c.Choices[0]
	m := choice.Message
	r.refused, r.finish = m.Refusal != "", choice.FinishReason
	if err := r.addMessage(m.Content, m.JSON.Content.Raw(), m.RawJSON(), len(m.JSON.ExtraFields) > 0); err != nil {
		return err
	}
	for i, t := range m.ToolCalls {
		if err := r.addCall(int64(i), t.ID, t.Function.Name, written(t.Function.Arguments, t.Function.JSON.Arguments.Raw()), t.RawJSON()); err != nil {
			return err
		}
	}
	return nil
}

// count retains the last counts: servers that send several send sums.
func (r *reading) count(u openai.CompletionUsage) {
	if u.PromptTokens+u.CompletionTokens <= 0 {
		return
	}
	cached := int(u.PromptTokensDetails.CachedTokens)
	for _, name := range []string{"prompt_cache_hit_tokens", "cached_tokens"} { // of DeepSeek, Moonshot
		if n, err := strconv.Atoi(u.JSON.ExtraFields[name].Raw()); err == nil {
			cached = max(cached, n)
		}
	}
	r.usage = Usage{InputTokens: int(u.PromptTokens), OutputTokens: int(u.CompletionTokens), CachedTokens: min(max(cached, 0), int(u.PromptTokens))}
}

// BytesPerToken is the estimated length of a token: tokenizers differ by model.
const BytesPerToken = 4

// estimate counts the tokens of a request whose server has not reported them.
func (r *reading) estimate(sent int) {
	if r.usage == (Usage{}) {
		r.usage = Usage{InputTokens: sent / BytesPerToken, OutputTokens: (r.size + BytesPerToken - 1) / BytesPerToken, Estimated: true}
	}
}

// returned are the members of a message that go back to its model.
var returned = []string{thoughts, "reasoning", "reasoning_details", extraContent}

// addMessage adds content, a text or a list of parts, and with extra the other members of raw.
func (r *reading) addMessage(content, list, raw string, extra bool) error {
	if strings.HasPrefix(list, "[") {
		content = ""
		var parts []struct{ Type, Text, Refusal string }
		if err := json.Unmarshal([]byte(list), &parts); err != nil {
			var texts []string // parts of another shape
			_ = json.Unmarshal([]byte(list), &texts)
			content = strings.Join(texts, "")
		}
		for _, p := range parts {
			if p.Type == "text" || p.Type == "output_text" {
				content += p.Text
			}
			r.refused = r.refused || p.Refusal != ""
		}
	}
	if extra {
		r.addMembers(raw)
	}
	if r.size += len(content); r.size > maxOutputBytes {
		return errTooLarge
	}
	r.show(r.think.next(content))
	return nil
}

// addMembers adds what goes back to the model: texts and lists come in pieces.
func (r *reading) addMembers(raw string) {
	var all Members
	if json.Unmarshal([]byte(raw), &all) != nil {
		return
	}
	for _, name := range returned {
		var text string
		r.size += len(all[name])
		if len(all[name]) == 0 || json.Unmarshal(all[name], &text) != nil {
			r.members = joined(r.members, name, all[name])
			continue
		}
		if r.texts == nil {
			r.texts = map[string]*strings.Builder{}
		}
		if r.texts[name] == nil {
			r.texts[name] = &strings.Builder{}
		}
		r.texts[name].WriteString(text)
	}
}

// joined adds a piece of a member: lists go on, other values replace each other.
func joined(all Members, name string, piece json.RawMessage) Members {
	if len(piece) == 0 || string(piece) == "null" {
		return all
	}
	if all == nil {
		all = Members{}
	}
	var lists [2][]json.RawMessage
	if json.Unmarshal(all[name], &lists[0]) == nil && json.Unmarshal(piece, &lists[1]) == nil {
		piece, _ = json.Marshal(append(lists[0], lists[1]...)) // its values were read
	}
	all[name] = piece
	return all
}

// thoughtEnd ends a thought whose opening tag was in the prompt.
const thoughtEnd = "\n</think>\n"

// show adds text and shows what is no call written as text.
func (r *reading) show(text string) {
	from := max(0, r.text.Len()-len(thoughtEnd))
	r.text.WriteString(text)
	if _, rest, ended := strings.Cut(r.text.String()[from:], thoughtEnd); ended && !r.thought {
		r.thought = true
		r.withdraw()
		r.text.Reset()
		r.text.WriteString(strings.TrimSpace(rest))
		r.shown = 0
	}
	r.held = r.text.Len()
	if len(r.tools) > 0 {
		r.held = callWritten(r.text.String(), r.shown)
	}
	if r.held > r.shown {
		r.say(Event{Text: r.text.String()[r.shown:r.held]})
		r.shown = r.held
	}
}

func (r *reading) addCall(index int64, id, name, arguments, raw string) error {
	p := r.partsAt(index)
	if p == nil || p.endsBefore(id, name, arguments) {
		p = &callParts{index: index}
		r.parts = append(r.parts, p)
	}
	var all Members
	if json.Unmarshal([]byte(raw), &all) == nil {
		for member, v := range all {
			if !slices.Contains([]string{"index", "id", "type", "function"}, member) {
				r.size += len(v)
				p.members = joined(p.members, member, v)
			}
		}
	}
	if r.size += len(id) + len(name) + len(arguments); r.size > maxOutputBytes || len(r.parts) > maxCalls {
		return errTooLarge
	}
	if p.id == "" {
		p.id = id
	}
	if name != p.name && p.arguments.Len() == 0 { // otherwise the name is repeated with every piece
		p.name += name
	}
	p.arguments.WriteString(arguments)
	if arguments != "" {
		r.say(Event{Text: arguments, Tool: p.name, Call: slices.Index(r.parts, p)})
	}
	return nil
}

// partsAt returns the last call with this index.
func (r *reading) partsAt(index int64) *callParts {
	for i := len(r.parts) - 1; i >= 0; i-- {
		if r.parts[i].index == index {
			return r.parts[i]
		}
	}
	return nil
}

// endsBefore reports whether a piece with the same index begins another call: some servers send
// whole calls and number all of them 0.
func (p *callParts) endsBefore(id, name, arguments string) bool {
	if id != "" && p.id != "" {
		return id != p.id
	}
	return name != "" && (name != p.name || arguments != "") && json.Valid([]byte(unfence(p.arguments.String())))
}

// written returns the arguments of a call, which some servers send as an object where the API has
// a string.
func written(arguments, raw string) string {
	if arguments == "" && strings.HasPrefix(raw, "{") {
		return raw
	}
	return arguments
}

// fill completes the response with the whole reply.
func (r *reading) fill(resp *Response, req Request) {
	for name, text := range r.texts {
		if text.Len() > 0 {
			quoted, _ := json.Marshal(text.String()) // a text always has JSON
			r.members = joined(r.members, name, quoted)
		}
	}
	resp.Text, resp.Opaque = r.text.String(), &Opaque{Model: resp.Model, Members: r.members}
	for _, p := range r.parts {
		arguments := unfence(p.arguments.String())
		if strings.TrimSpace(arguments) == "" { // a call without arguments has none to write
			arguments = "{}"
		}
		for _, t := range req.Tools {
			if t.Name == p.name {
				arguments = unquoted(arguments, t.Schema)
			}
		}
		resp.Calls = append(resp.Calls, Call{ID: p.id, Name: p.name, Arguments: arguments})
		resp.Opaque.Calls = append(resp.Opaque.Calls, p.members)
	}
	identify(resp.Calls, req.Messages)
}

// ending is the meaning of a finish reason.
type ending string

const (
	whole    ending = ""
	cut      ending = "the model's answer reached the token limit"
	withheld ending = "the model's answer was withheld by a content filter"
	spoiled  ending = "the model's answer broke off"
)

// endings are the finish reasons of servers, in lower case.
var endings = map[string]ending{
	"stop": whole, "eos": whole, "eos_token": whole, "end_turn": whole, "stop_sequence": whole, "complete": whole,
	"tool_calls": whole, "tool_call": whole, "tool_use": whole, "function_call": whole,
	"length": cut, "max_tokens": cut, "model_length": cut, "max_output_tokens": cut,
	"content_filter": withheld, "safety": withheld, "recitation": withheld, "refusal": withheld, "blocklist": withheld, "prohibited_content": withheld, "sensitive": withheld,
	"error": spoiled, "malformed_function_call": spoiled, "insufficient_system_resource": spoiled, "network_error": spoiled,
}

// errCallCut means that the only calls of a reply reached the limit of tokens.
var errCallCut = errors.New("call cut off")

// askOn has a text that reached the limit of tokens go on, once. After that its end is marked.
const askOn = "Your last reply reached the limit of tokens. Go on exactly where it ends. Repeat nothing."

// corrections are what a model is told of a reply that it is asked for again.
var corrections = []struct {
	of   error
	text string
}{
	{errLeaked, "Your last reply had a tool call as text, which is not executed. Call the tool through the interface for tool calls, or answer in plain text."},
	{errCallCut, "Your last reply reached the limit of tokens in the middle of a tool call, which is not executed. Make the call again, with shorter arguments."},
}

// correctionOf is empty for other failures.
func correctionOf(failed *Error) string {
	for _, c := range corrections {
		if errors.Is(failed, c.of) {
			return c.text
		}
	}
	return ""
}

// cutMark ends a text that reached the limit of tokens.
const cutMark = "\n\n[cut off: the model's limit of tokens was reached]"

// finished ends the reading and decides by the finish reason whether the reply is whole.
func (r *reading) finished() *Error {
	r.show(r.think.end())
	if err := r.leaked(); err != nil {
		return err
	}
	if r.held = r.text.Len(); r.held > r.shown {
		r.say(Event{Text: r.text.String()[r.shown:]})
	}
	end, known := endings[strings.ToLower(r.finish)]
	blank := strings.TrimSpace(r.text.String()) == ""
	calledByReason := strings.Contains(strings.ToLower(r.finish), "tool") || strings.EqualFold(r.finish, "function_call")
	switch {
	case r.refused:
		return &Error{Reason: "the model refused to answer"}
	case r.finish == "":
		return &Error{Reason: "the model's answer was cut off", Retryable: true}
	case !known:
		return &Error{Reason: "the model did something else than answer", Detail: fmt.Sprintf("finish_reason %q", r.finish)}
	case end == cut && len(r.parts) > 0:
		r.parts = slices.DeleteFunc(r.parts, func(p *callParts) bool { return !p.whole() })
		if len(r.parts) == 0 {
			return &Error{Reason: string(cut), Retryable: true, Err: errCallCut}
		}
	case end == cut && !blank:
		r.atLimit = true
	case end != whole:
		return &Error{Reason: string(end), Retryable: end == spoiled}
	case len(r.parts) > 0:
	case calledByReason && blank:
		return &Error{Reason: "the model did something else than answer"}
	case blank:
		return &Error{Reason: "the model answered with nothing", Retryable: true}
	}
	return nil
}

// whole reports whether the arguments are a whole object, as a prefix of one never is.
func (p *callParts) whole() bool {
	arguments := strings.TrimSpace(unfence(p.arguments.String()))
	return strings.HasPrefix(arguments, "{") && json.Valid([]byte(arguments))
}

// identify gives every call a unique id within the conversation: its own one, or a generated one
// if a server sent none or repeated one. A generated id is valid for every server.
func identify(calls []Call, history []Message) {
	taken := map[string]bool{"": true}
	n := 0
	for _, m := range history {
		for _, c := range m.Calls {
			taken[c.ID] = true
			n++
		}
	}
	for i := range calls {
		c := &calls[i]
		for taken[c.ID] {
			n++
			c.ID = fmt.Sprintf("call%05d", n)
		}
		taken[c.ID] = true
	}
}
