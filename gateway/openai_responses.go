package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// responseRequest is the body of POST /v1/responses.
type responseRequest struct {
	openaiRequest
	Input        json.RawMessage `json:"input"` // a text, or messages
	Previous     string          `json:"previous_response_id"`
	Conversation json.RawMessage `json:"conversation"`
	Background   bool            `json:"background"`
	Text         struct {
		Format *format `json:"format"`
	} `json:"text"`
}

// responses is POST /v1/responses.
func (g *Gateway) responses(c *gin.Context, who caller) error {
	var r responseRequest
	if err := readKnown(c, &r); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	message, err := r.message()
	if err != nil {
		return err
	}
	return g.converse(c, who, message, r.Stream, func(t turn, out *sse) dialect {
		return &response{t: t, out: out, model: r.Model}
	})
}

func (r responseRequest) check() error {
	switch {
	case r.Previous != "":
		return problem.New(intents.SchemaInvalid, "/previous_response_id", "no response is kept; name the session in the header x-session-id")
	case len(r.Conversation) > 0 && string(r.Conversation) != "null":
		return problem.New(intents.SchemaInvalid, "/conversation", "no conversation is kept here; name the session in the header x-session-id")
	case r.Background:
		return problem.New(intents.SchemaInvalid, "/background", "an answer is waited for")
	}
	if err := r.Text.Format.check("/text/format"); err != nil {
		return err
	}
	return r.openaiRequest.check()
}

func (r responseRequest) message() (string, error) {
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		return text, checkMessage(text, "/input")
	}
	var items []said
	if json.Unmarshal(r.Input, &items) != nil {
		return "", problem.New(intents.SchemaInvalid, "/input", "must be a text or a list of messages")
	}
	for i, item := range items {
		if item.Type != "" && item.Type != "message" {
			return "", problem.New(intents.SchemaInvalid, fmt.Sprintf("/input/%d", i), "only messages are read")
		}
	}
	return lastOfUser(items, "/input")
}

// response writes a turn as a response of one message. Its stream is a sequence of events
// with numbers.
type response struct {
	t      turn
	out    *sse
	model  string
	number int
	text   strings.Builder
}

func (d *response) event(kind string, body gin.H) {
	body["type"], body["sequence_number"] = kind, d.number
	d.number++
	d.out.write("event: " + kind + "\n")
	d.out.data(body)
}

// part is an event about the text of the message.
func (d *response) part(kind string, body gin.H) {
	body["item_id"], body["output_index"], body["content_index"] = d.item(), 0, 0
	d.event(kind, body)
}

func (d *response) item() string { return "msg_" + d.t.id }

func outputText(text string) gin.H {
	return gin.H{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// output is the message.
func (d *response) output(status string, parts ...gin.H) gin.H {
	return gin.H{"type": "message", "id": d.item(), "status": status, "role": "assistant", "content": append([]gin.H{}, parts...)}
}

func (d *response) object(status string, output ...gin.H) gin.H {
	return gin.H{
		"id": d.t.plan, "object": "response", "created_at": d.t.opened.Unix(), "status": status, "model": d.model,
		"output": append([]gin.H{}, output...), "error": nil, "incomplete_details": nil, "instructions": nil, "metadata": gin.H{},
		"parallel_tool_calls": true, "temperature": nil, "top_p": nil, "tool_choice": "auto", "tools": []any{}, "usage": nil,
	}
}

func (d *response) begin() {
	d.event("response.created", gin.H{"response": d.object("in_progress")})
	d.event("response.in_progress", gin.H{"response": d.object("in_progress")})
	d.event("response.output_item.added", gin.H{"output_index": 0, "item": d.output("in_progress")})
	d.part("response.content_part.added", gin.H{"part": outputText("")})
}

func (d *response) say(delta string) {
	d.text.WriteString(delta)
	d.part("response.output_text.delta", gin.H{"delta": delta, "logprobs": []any{}})
}

func (d *response) note(e event) {
	d.part("response.output_text.delta", gin.H{"delta": "", "logprobs": []any{}, "writ": e})
}

func (d *response) end(r runReply, used catalog.Usage) {
	text := d.text.String()
	d.part("response.output_text.done", gin.H{"text": text, "logprobs": []any{}})
	d.part("response.content_part.done", gin.H{"part": outputText(text)})
	d.event("response.output_item.done", gin.H{"output_index": 0, "item": d.output("completed", outputText(text))})
	d.event("response.completed", gin.H{"response": d.whole(text, r, used)})
}

func (d *response) whole(text string, r runReply, used catalog.Usage) any {
	body := d.object("completed", d.output("completed", outputText(text)))
	body["usage"] = gin.H{
		"input_tokens": used.InputTokens, "input_tokens_details": gin.H{"cached_tokens": 0, "cache_write_tokens": 0},
		"output_tokens": used.OutputTokens, "output_tokens_details": gin.H{"reasoning_tokens": 0}, "total_tokens": used.InputTokens + used.OutputTokens,
	}
	body["writ"] = r.beside()
	return body
}
