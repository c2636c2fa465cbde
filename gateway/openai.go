package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

// Clients of OpenAI's API work unmodified: a model is an agent's name, and the bearer is an API
// key. Our own data is in a member writ.
const (
	routeCompletions = "/v1/chat/completions"
	routeResponses   = "/v1/responses"
	routeModels      = "/v1/models"
	routeModel       = routeModels + "/:model"
)

// ofBearers are the routes where the bearer is an API key, each with its format of errors.
var ofBearers = map[string]func(problem.Problem) any{
	routeCompletions: problem.OpenAI, routeResponses: problem.OpenAI, routeModels: problem.OpenAI, routeModel: problem.OpenAI, routeMCP: mcpError,
}

// openaiPaths are the ends of paths of OpenAI's API, which clients put behind their base URL.
var openaiPaths = []string{"/chat/completions", "/completions", "/responses", "/models", "/embeddings"}

// wrongBase reports whether a path is one of OpenAI's API at another base URL than ours.
func wrongBase(path string) bool {
	if base, _, ok := strings.Cut(path, "/models/"); ok {
		return base != "/v1"
	}
	return slices.ContainsFunc(openaiPaths, func(end string) bool {
		base, ok := strings.CutSuffix(path, end)
		return ok && base != "/v1"
	})
}

// unserved answers a request for which there is no route. A client of OpenAI's API whose base URL is
// wrong learns the right one, in the format of that API, and a client that wants to log in, how.
func (g *Gateway) unserved(c *gin.Context) error {
	switch path := c.Request.URL.Path; {
	case path == "/register" || path == "/authorize" || path == "/token": // where an MCP client looks for OAuth that it was not told of
		p := problem.New(intents.NotFound, "", "writ is no authorization server")
		p.Hint = "send an API key as bearer: Authorization: Bearer KEY (writ apikey create makes one); or have the operator name an OpenID provider in oidc"
		return p
	case !wrongBase(path):
		return edge.NoRoute()
	}
	p := problem.New(intents.NotFound, "", "the API for clients of OpenAI is not at this base URL")
	p.Hint = "set the client's base URL to " + g.baseURL(c.Request) + "/v1, which serves /chat/completions, /responses and /models"
	p.TraceID = edge.Trace(c)
	p.WriteAs(c.Writer, problem.ContentType, problem.WithOpenAI(*p))
	return nil
}

// bearerKey returns the API key that a client of OpenAI's API, or of MCP, sends.
func bearerKey(c *gin.Context) string {
	if ofBearers[c.FullPath()] == nil {
		return ""
	}
	return bearerOf(c)
}

// bearerOf returns the bearer credential of a request.
func bearerOf(c *gin.Context) string {
	scheme, bearer, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(bearer)
}

// listModels is GET /v1/models, and GET /v1/models/{model} for one of them.
func (g *Gateway) listModels(c *gin.Context, a actor) error {
	names, err := g.agents(c.Request.Context(), a)
	models, one := []gin.H{}, c.Param("model")
	for _, name := range names {
		m := gin.H{"id": name, "object": "model", "created": 0, "owned_by": "writ"}
		if name == one {
			return respond(c, m, err)
		}
		models = append(models, m)
	}
	if one != "" && err == nil {
		return problem.New(intents.NotFound, "/model", catalog.Like("no such model", one, names))
	}
	return respond(c, gin.H{"object": "list", "data": models}, err)
}

// openaiRequest is the body of a request of either API. Members about a model's sampling are
// ignored: the agent determines it.
type openaiRequest struct {
	Model         string          `json:"model"`
	Messages      []chatMessage   `json:"messages"` // of a completion
	Input         json.RawMessage `json:"input"`    // of a response: a text, or messages
	Instructions  string          `json:"instructions"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	format  *answerFormat // nil: plain text
	ignored []string      // members that the answer does without
}

// notServed are members that request features that an answer would not have.
var notServed = []struct{ name, why string }{
	{"n", "there is one answer"},
	{"previous_response_id", "no response is kept; name the session in the header x-session-id"},
	{"conversation", "no conversation is kept here; name the session in the header x-session-id"},
	{"background", "an answer is waited for"},
}

// readOpenAI reads a request as a turn.
func readOpenAI(c *gin.Context) (r openaiRequest, q turnRequest, err error) {
	doc, err := readJSON(c)
	if err == nil {
		err = misfit(json.Unmarshal(doc, &r))
	}
	if err == nil {
		err = r.features(doc)
	}
	if err == nil && r.Model == "" {
		err = problem.New(intents.NotFound, "/model", "names no agent; GET "+routeModels+" lists them")
	}
	switch {
	case err != nil:
	case c.FullPath() == routeCompletions:
		q, err = conversation(r.Messages, "/messages", r.Instructions)
	case json.Unmarshal(r.Input, &q.message) == nil:
		q.instruct(r.Instructions)
		err = checkSize(q.message, "/input", maxLong)
	case json.Unmarshal(r.Input, &r.Messages) == nil:
		q, err = conversation(r.Messages, "/input", r.Instructions)
	default:
		err = problem.New(intents.SchemaInvalid, "/input", "must be a text or a list of messages")
	}
	q.id = "" // the client numbers its attempts
	return r, q, err
}

// features reads the form of the answer, and refuses requests for what an answer would not have.
func (r *openaiRequest) features(doc []byte) (err error) {
	var members map[string]json.RawMessage
	var text struct{ Format json.RawMessage }
	_ = json.Unmarshal(doc, &members)          // an object: it was read already
	_ = json.Unmarshal(members["text"], &text) // without a format, answers are text
	asks := func(name string) bool {
		switch string(members[name]) { // canonical
		case "", "null", "false", "1", "[]", `""`, `"auto"`, `"none"`:
			return false
		}
		return true
	}
	for _, m := range notServed {
		if asks(m.name) {
			return problem.New(intents.SchemaInvalid, "/"+m.name, m.why)
		}
	}
	for name, must := range map[string]string{"tools": "tool_choice", "functions": "function_call"} {
		if asks(name) && asks(must) {
			return problem.New(intents.SchemaInvalid, "/"+must, "an agent calls tools of its own, and none of the client: leave "+must+" out, and have an operator approve skills for it (writ skill approve); or call skills yourself, at "+routeMCP)
		}
		if asks(name) {
			r.ignored = append(r.ignored, name)
		}
	}
	slices.Sort(r.ignored)
	if r.format, err = readFormat(members["response_format"], "/response_format"); err == nil && r.format == nil {
		r.format, err = readFormat(text.Format, "/text/format")
	}
	if r.format != nil {
		r.Instructions = r.format.asks + "\n" + r.Instructions
	}
	return err
}
