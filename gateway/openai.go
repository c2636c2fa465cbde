package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/problem"
)

// Clients of OpenAI's API work unmodified: a model is an agent's name, and the bearer is
// an API key. What is ours stands beside, in a member writ.
const (
	routeCompletions = "/v1/chat/completions"
	routeResponses   = "/v1/responses"
	routeModels      = "/v1/models"
)

// openaiBodies are the refusals of these routes.
var openaiBodies = map[string]func(problem.Problem) any{
	routeCompletions: openaiError, routeResponses: openaiError, routeModels: openaiError,
}

// openaiError is a problem in the form of OpenAI's API.
func openaiError(p problem.Problem) any {
	kind := "invalid_request_error"
	switch {
	case p.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case p.Status == http.StatusForbidden:
		kind = "permission_error"
	case p.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case p.Status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	message := cmp.Or(p.Detail, p.Title)
	if p.Hint != "" {
		message += "; " + p.Hint
	}
	var param any
	if p.Pointer != "" {
		param = strings.ReplaceAll(p.Pointer[1:], "/", ".")
	}
	return gin.H{"error": gin.H{"message": message, "type": kind, "code": p.Code, "param": param}}
}

// bearerKey is the API key that a client of OpenAI's API sends.
func bearerKey(c *gin.Context) string {
	if openaiBodies[c.FullPath()] == nil {
		return ""
	}
	key, _ := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	return key
}

// theAgent carries out what people ask.
const theAgent = "planner"

// knownAgent says whether there is an agent of a name; param is where the name stands.
func knownAgent(name, param string) error {
	if name == theAgent {
		return nil
	}
	return problem.New(intents.NotFound, param, "no such agent; GET "+routeModels+" lists them")
}

// listModels is GET /v1/models.
func (g *Gateway) listModels(c *gin.Context, who caller) error {
	if _, err := g.identify(c.Request.Context(), who, claim{}); err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{"object": "list", "data": []gin.H{{"id": theAgent, "object": "model", "created": 0, "owned_by": "writ"}}})
	return nil
}

// openaiRequest is what the requests of both APIs have in common. Members that are not
// here say how a model samples, which is the agent's to say: they are let pass.
type openaiRequest struct {
	Model  string            `json:"model"`
	Stream bool              `json:"stream"`
	Tools  []json.RawMessage `json:"tools"`
}

// check refuses what an answer would not have.
func (r openaiRequest) check() error {
	if len(r.Tools) > 0 {
		return problem.New(intents.SchemaInvalid, "/tools", "an agent has tools of its own: leave tools out, and have an operator approve skills for it (writ skill approve)")
	}
	return knownAgent(r.Model, "/model")
}

// format of an answer that a request asks for.
type format struct {
	Type string `json:"type"`
}

func (f *format) check(pointer string) error {
	if f != nil && f.Type != "" && f.Type != "text" {
		return problem.New(intents.SchemaInvalid, pointer, "answers are text")
	}
	return nil
}

// said is one message of a conversation.
type said struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a text, or parts that are texts
	Type    string          `json:"type"`    // of an item of /v1/responses
}

func (s said) text(pointer string) (string, error) {
	var text string
	if json.Unmarshal(s.Content, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(s.Content, &parts) != nil {
		return "", problem.New(intents.SchemaInvalid, pointer, "must be a text or a list of texts")
	}
	var texts []string
	for i, p := range parts {
		if p.Type != "text" && p.Type != "input_text" && p.Type != "output_text" {
			return "", problem.New(intents.SchemaInvalid, fmt.Sprintf("%s/%d", pointer, i), "only text is read")
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n"), nil
}

// lastOfUser is the message that a turn is about: the last one of the user.
func lastOfUser(messages []said, pointer string) (string, error) {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == "user" {
			at := fmt.Sprintf("%s/%d/content", pointer, i)
			text, err := messages[i].text(at)
			if err == nil {
				err = checkMessage(text, at)
			}
			return text, err
		}
	}
	return "", problem.New(intents.SchemaInvalid, pointer, "there is no message of the user")
}

// dialect is how one of the APIs writes a turn.
type dialect interface {
	begin()
	say(delta string)                   // a piece of the text
	note(e event)                       // anything else
	end(r runReply, used catalog.Usage) // the turn has ended, or waits
	// whole is all of it, without a stream.
	whole(text string, r runReply, used catalog.Usage) any
}

// converse has a request carried out and answers in a dialect.
func (g *Gateway) converse(c *gin.Context, who caller, message string, stream bool, dialectOf func(turn, *sse) dialect) error {
	t, reply, err := g.begin(c, who, claim{}, message)
	if err != nil {
		return err
	}
	c.Header("X-Should-Retry", "false") // from here on the plan goes on: sent again it would be another one
	out := newSSE(c.Writer)
	d := dialectOf(t, out)
	if !stream {
		if reply.Approval == nil {
			if err := g.await(c.Request.Context(), t, &reply); err != nil {
				return err
			}
		}
		c.JSON(http.StatusOK, d.whole(reply.words(), reply, g.used(c, t)))
		return nil
	}
	d.begin()
	s := speech{dialect: d, out: out, reply: &reply}
	if reply.Approval != nil {
		s.take(newEvent(bus.FrameHeld, bus.HeldData{PlanID: t.plan, Approval: *reply.Approval}))
	} else {
		view, err := g.follow(c.Request.Context(), t, 0, g.pace.quiet, s.take)
		if err != nil {
			return nil //nolint:nilerr // the client has gone; the plan goes on
		}
		if view != nil {
			for _, e := range closing(*view) {
				s.take(e)
			}
		}
	}
	d.end(reply, g.used(c, t))
	return nil
}

// used is what the models of a plan have used so far. It is not waited for: where the plan
// cannot be read, nothing is counted.
func (g *Gateway) used(c *gin.Context, t turn) (sum catalog.Usage) {
	view, err := g.viewPlan(c.Request.Context(), t.actor, t.plan)
	if err == nil {
		for _, u := range view.Usage {
			sum.InputTokens += u.InputTokens
			sum.OutputTokens += u.OutputTokens
		}
	}
	return sum
}

// words are what a reply says to a person.
func (r runReply) words() string {
	switch r.Status {
	case statusHeld:
		return strings.TrimSpace("This waits until somebody approves it. " + r.Approval.Reason)
	case statusExecuting:
		return "This takes longer than one request may. It goes on as plan " + r.PlanID + "."
	case string(catalog.PlanComplete):
		return r.Response
	default:
		return r.Reason
	}
}

// beside is what stands in the member writ of an ended turn: all but the text.
func (r runReply) beside() runReply {
	r.Response = ""
	return r
}

// speech tells a turn's text while it comes: each piece once, and what of the answer no
// piece had. A text that was withdrawn ends its paragraph.
type speech struct {
	dialect
	out   *sse
	reply *runReply
	said  string // of the reply that comes
	ended bool   // what was said before is not part of it
}

// take tells a frame and says whether more are to come.
func (s *speech) take(e event) bool {
	more := s.reply.take(e)
	switch e.Kind {
	case "":
		s.out.write(": nothing new\n\n")
	case bus.FrameToken:
		var d bus.ContentData
		if json.Unmarshal(e.Data, &d) == nil && d.Reset {
			s.said, s.ended = "", true
		} else {
			s.tell(d.Text)
		}
	case bus.FrameAnswer:
		s.rest(s.reply.Response)
	case bus.FrameError:
		s.rest(s.reply.Reason)
	case bus.FrameHeld:
		s.rest(s.reply.words())
	case bus.FrameDone:
	default:
		s.note(e)
	}
	return more && s.out.err == nil
}

// rest tells what of a text was not said yet.
func (s *speech) rest(text string) {
	rest, begun := strings.CutPrefix(text, s.said)
	if !begun {
		s.said, s.ended = "", true
	}
	s.tell(rest)
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
