package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// dialect is how one of OpenAI's APIs writes a turn.
type dialect interface {
	begin()
	say(delta string)                   // a piece of the text
	note(e event)                       // anything else
	end(r runReply, used catalog.Usage) // the turn has ended, or waits
	// whole is all of it, without a stream.
	whole(text string, r runReply, used catalog.Usage) any
}

// openai has a request carried out and answers in a dialect.
func (g *Gateway) openai(dialectOf func(turn, *sse, openaiRequest) dialect) func(*gin.Context, caller) error {
	return func(c *gin.Context, who caller) error {
		r, q, err := readOpenAI(c)
		if err != nil {
			return err
		}
		t, reply, err := g.begin(c, who, claim{}, named{r.Model, "/model"}, q)
		if err != nil {
			return err
		}
		s := speech{out: newSSE(c.Writer), reply: &reply}
		s.dialect = dialectOf(t, s.out, r)
		wait, take := g.pace.wait, reply.take
		if r.Stream {
			s.begin()
			wait, take = standingLife, s.take
		}
		if reply.Approval == nil {
			if err := g.await(c.Request.Context(), wait, t, &reply, take); err != nil {
				return err
			}
		} else if r.Stream {
			s.tell(reply.words())
		}
		text, used := reply.words(), g.used(c, t)
		reply.Response = "" // what stands beside the text
		if r.Stream {
			s.end(reply, used)
		} else {
			c.JSON(http.StatusOK, s.whole(text, reply, used))
		}
		return nil
	}
}

// used is what the models of a plan have used so far. Where the plan cannot be read,
// nothing is counted.
func (g *Gateway) used(c *gin.Context, t turn) (sum catalog.Usage) {
	view, _ := g.viewPlan(c.Request.Context(), t.actor, t.plan)
	for _, u := range view.Usage {
		sum.InputTokens += u.InputTokens
		sum.OutputTokens += u.OutputTokens
	}
	return sum
}

// words are what a reply says to a person.
func (r *runReply) words() string {
	switch r.Status {
	case statusHeld:
		return cmp.Or(r.Response, strings.TrimSpace("This waits until somebody approves it. "+r.Approval.Reason))
	case statusExecuting:
		return "This takes longer than one request may. It goes on as plan " + r.PlanID + "."
	default: // complete, or failed
		return r.Response + r.Reason
	}
}

// speech tells a turn's text while it comes: each piece once, and then what of the answer
// no piece had. A text that was withdrawn ends its paragraph.
type speech struct {
	dialect
	out   *sse
	reply *runReply
	said  string // of the text that comes
	ended bool   // what was said before is no part of it
}

// take tells a frame and says whether more are to come.
func (s *speech) take(e event) bool {
	more := s.reply.take(e)
	switch e.Kind {
	case "":
		s.out.write(": nothing new\n\n")
	case bus.FrameToken:
		var d bus.ContentData
		_ = json.Unmarshal(e.Data, &d) // what does not match its kind says nothing
		if d.Reset {
			s.said, s.ended = "", true
		}
		s.tell(d.Text)
	case bus.FrameAnswer, bus.FrameError, bus.FrameHeld:
		rest, begun := strings.CutPrefix(s.reply.words(), s.said)
		if s.said == "" || strings.TrimSpace(s.said) != s.reply.words() { // blanks at its ends are not of the answer
			s.ended = s.ended || !begun
			s.tell(rest)
		}
	case bus.FrameDone:
	default:
		s.note(e)
	}
	return more && s.out.err == nil
}

func (s *speech) tell(text string) {
	if text == "" {
		return
	}
	if s.ended {
		s.say("\n\n")
	}
	s.ended, s.said = false, s.said+text
	s.say(text)
}
