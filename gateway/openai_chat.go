package gateway

import (
	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

func newCompletion(t turn, out *sse, r openaiRequest) dialect {
	return &completion{t, out, r.Model, r.StreamOptions.IncludeUsage}
}

// completion writes a turn as a chat completion.
type completion struct {
	t     turn
	out   *sse
	model string
	usage bool // the last chunk counts tokens
}

func (d *completion) object(kind string) gin.H {
	return gin.H{"id": d.t.plan, "object": kind, "created": d.t.opened.Unix(), "model": d.model}
}

// chunk has one piece of the answer; finish is its reason, or nil.
func (d *completion) chunk(delta gin.H, finish any, writ any) {
	body := d.object("chat.completion.chunk")
	body["choices"] = []gin.H{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
	if d.usage {
		body["usage"] = nil
	}
	if writ != nil {
		body["writ"] = writ
	}
	d.out.data(body)
}

func (d *completion) begin()           { d.chunk(gin.H{"role": "assistant", "content": ""}, nil, nil) }
func (d *completion) say(delta string) { d.chunk(gin.H{"content": delta}, nil, nil) }
func (d *completion) note(e event)     { d.chunk(gin.H{}, nil, e) }

func (d *completion) end(r runReply, used catalog.Usage) {
	d.chunk(gin.H{}, "stop", r.member())
	if d.usage {
		body := d.object("chat.completion.chunk")
		body["choices"], body["usage"] = []gin.H{}, completionUsage(used)
		d.out.data(body)
	}
	d.out.write("data: [DONE]\n\n")
}

func (d *completion) fail(p *problem.Problem) {
	d.out.data(problem.WithOpenAI(*p))
	d.out.write("data: [DONE]\n\n")
}

func (d *completion) whole(text string, r runReply, used catalog.Usage) any {
	body := d.object("chat.completion")
	message := gin.H{"role": "assistant", "content": text, "refusal": nil}
	body["choices"] = []gin.H{{"index": 0, "message": message, "logprobs": nil, "finish_reason": "stop"}}
	if body["usage"] = completionUsage(used); r.PlanID != "" {
		body["writ"] = r
	}
	return body
}

func completionUsage(u catalog.Usage) gin.H {
	return gin.H{"prompt_tokens": u.InputTokens, "completion_tokens": u.OutputTokens, "total_tokens": u.InputTokens + u.OutputTokens}
}
