package gateway

import (
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

func newResponse(t turn, out *sse, r openaiRequest) dialect {
	return &response{t: t, out: out, model: r.Model}
}

// response writes a turn as a response of one message. Its stream is a sequence of numbered
// events.
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
	body["item_id"], body["output_index"], body["content_index"] = d.t.id, 0, 0
	d.event(kind, body)
}

func outputText(text string) gin.H {
	return gin.H{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// output returns the message.
func (d *response) output(status string, parts ...gin.H) gin.H {
	return gin.H{"type": "message", "id": d.t.id, "status": status, "role": "assistant", "content": append([]gin.H{}, parts...)}
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

func (d *response) fail(p *problem.Problem) {
	body := d.object("failed", d.output("incomplete", outputText(d.text.String())))
	body["error"] = gin.H{"code": "server_error", "message": p.Detail + "; " + p.Hint}
	body["writ"] = p
	d.event("response.failed", gin.H{"response": body})
}

func (d *response) whole(text string, r runReply, used catalog.Usage) any {
	body := d.object("completed", d.output("completed", outputText(text)))
	body["usage"] = gin.H{
		"input_tokens": used.InputTokens, "input_tokens_details": gin.H{"cached_tokens": used.CachedTokens, "cache_write_tokens": 0},
		"output_tokens": used.OutputTokens, "output_tokens_details": gin.H{"reasoning_tokens": 0}, "total_tokens": used.InputTokens + used.OutputTokens,
	}
	if r.PlanID != "" {
		body["writ"] = r
	}
	return body
}
