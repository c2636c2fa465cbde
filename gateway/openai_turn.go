package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

// dialect writes a turn in the format of one of OpenAI's APIs.
type dialect interface {
	begin()
	say(delta string)                   // a piece of the text
	note(e event)                       // anything else
	fail(p *problem.Problem)            // the stream ends, and the turn has not
	end(r runReply, used catalog.Usage) // the turn has ended, or waits
	// whole returns the complete answer, without a stream.
	whole(text string, r runReply, used catalog.Usage) any
}

// openai has a request executed and answers in a dialect.
func (g *Gateway) openai(dialectOf func(turn, *sse, openaiRequest) dialect) func(*gin.Context, caller) error {
	return func(c *gin.Context, who caller) error {
		r, q, err := readOpenAI(c)
		if err != nil {
			return err
		}
		if isFrontEndPrompt(r.Messages) {
			return g.answerPrompt(c, who, r, q.message, dialectOf)
		}
		t, reply, err := g.begin(c, who, claim{}, namedAgent{r.Model, "/model"}, q)
		if err != nil {
			return err
		}
		defer g.hungUp(c.Request.Context(), t)
		reply.Ignored = r.ignored
		s := speech{out: newSSE(c.Writer), reply: &reply, quiet: r.format != nil}
		s.dialect = dialectOf(t, s.out, r)
		wait, take := g.pace.wait, reply.take
		if r.Stream {
			s.begin()
			wait, take = standingLife, s.take
		}
		if reply.Approval == nil {
			if err := g.await(c.Request.Context(), wait, t, &reply, take); err != nil {
				if r.Stream {
					p := edge.Stopped(c.Request.Context(), err)
					p.TraceID = cmp.Or(p.TraceID, t.trace)
					s.fail(p)
				}
				return err
			}
		} else if r.Stream {
			s.report(reply.words())
		}
		used := g.used(c, t)
		text, err := r.format.write(reply.words(), reply.Status == string(catalog.PlanComplete))
		if err != nil {
			if r.Stream {
				s.fail(edge.Stopped(c.Request.Context(), err))
			}
			return err
		}
		if r.Stream && r.format != nil {
			s.say(text)
		}
		reply.Response = "" // the remaining members beside the text
		if r.Stream {
			s.end(reply, used)
		} else {
			c.JSON(http.StatusOK, s.whole(text, reply, used))
		}
		return nil
	}
}

// used returns the model usage of a plan so far; zero if the plan cannot be read.
func (g *Gateway) used(c *gin.Context, t turn) catalog.Usage {
	view, _ := g.viewPlan(c.Request.Context(), t.actor, t.plan)
	return total(view.Usage)
}

func total(used []catalog.Usage) (sum catalog.Usage) {
	for _, u := range used {
		sum.InputTokens += u.InputTokens
		sum.CachedTokens += u.CachedTokens
		sum.OutputTokens += u.OutputTokens
	}
	return sum
}

// member is the member writ of an answer; nil: there is no plan.
func (r *runReply) member() any {
	if r.PlanID == "" {
		return nil
	}
	return *r
}

// words returns the text of a reply for a person.
func (r *runReply) words() string {
	switch r.Status {
	case statusPendingApproval:
		return cmp.Or(r.Response, strings.TrimSpace("This waits until somebody approves it. "+r.Approval.Reason))
	case statusExecuting:
		return "This takes longer than one request may. It goes on as plan " + r.PlanID + "."
	default: // it has ended
		return r.Response + r.Reason
	}
}

// speech returns a turn's text as it is streamed: each piece once, and then the rest of the
// answer. A withdrawn text ends its paragraph.
type speech struct {
	dialect
	out   *sse
	reply *runReply
	text  string // current text
	ended bool   // earlier text is no part of the answer
	quiet bool   // the text is said in another form when it is complete
}

// take handles a frame and reports whether more are expected.
func (s *speech) take(e event) bool {
	more := s.reply.take(e)
	switch e.Kind {
	case "":
		s.out.write(": nothing new\n\n")
	case bus.FrameToken:
		var d bus.ContentData
		_ = json.Unmarshal(e.Data, &d) // data of the wrong kind says nothing
		if d.Reset {
			s.text, s.ended = "", true
		}
		s.report(d.Text)
	case bus.FrameAnswer, bus.FrameError, bus.FramePendingApproval:
		rest, begun := strings.CutPrefix(s.reply.words(), s.text)
		if s.text == "" || strings.TrimSpace(s.text) != s.reply.words() { // blanks at its ends are not part of the answer
			s.ended = s.ended || !begun
			s.report(rest)
		}
	case bus.FrameDone:
	default:
		s.note(e)
	}
	return more && s.out.err == nil
}

func (s *speech) report(text string) {
	if text == "" || s.quiet {
		return
	}
	if s.ended {
		s.say("\n\n")
	}
	s.ended, s.text = false, s.text+text
	s.say(text)
}
