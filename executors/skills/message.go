package skills

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
)

// A remote agent is a server of the registry with one tool, handle_message, which gets a message of
// a user with the history of the conversation. The ticket's pin says where the server is. The state
// that it stores for a session is returned only to it, and never for another user.

const messageTool = "handle_message"

// MaxAnswer bounds the answer of a remote agent, in bytes.
const MaxAnswer = 256 << 10

// Workflows is the data that remote agents have of the session of an intent.
type Workflows interface {
	State(ctx context.Context, o *executors.Intent, agent string) (json.RawMessage, error)
	History(ctx context.Context, o *executors.Intent) ([]catalog.Turn, error)
	Keep(ctx context.Context, o *executors.Intent, agent string, state json.RawMessage, complete bool) error
}

// RemoteAgent is the connection to one; Close it.
type RemoteAgent interface {
	Server
	io.Closer
}

// Message is the arguments of handle_message. Its sender sets the middle five.
type Message struct {
	SessionID string `json:"session_id"`
	RequestID string `json:"request_id"`
	Employee  string `json:"employee_id"`

	DisplayName string          `json:"display_name"`
	RawInput    string          `json:"raw_input"`
	Summary     string          `json:"intent_summary"`
	Entities    json.RawMessage `json:"entities"`
	Language    string          `json:"detected_language"`

	History []catalog.Turn  `json:"turn_history"`
	State   json.RawMessage `json:"workflow_state"`
}

// Answer is the answer of a remote agent.
type Answer struct {
	Content  string          `json:"content"`
	Complete bool            `json:"workflow_complete"`
	State    json.RawMessage `json:"workflow_state,omitempty"`
	Odd      []string        `json:"odd,omitempty"` // what writ made of a form that it should not have
}

// agentPin is the pin of the remote agent that an intent addresses.
func agentPin(o *executors.Intent, skill string) (intents.Pin, bool) {
	i := slices.IndexFunc(o.Ticket.Pins, func(p intents.Pin) bool { return p.Kind == intents.KindAgent && p.Skill == skill })
	if i < 0 {
		return intents.Pin{}, false
	}
	return o.Ticket.Pins[i], true
}

// message takes a message to a remote agent. It is sent at most once, unless the agent is idempotent.
func (s *skills) message(ctx context.Context, o *executors.Intent, pin intents.Pin, args catalog.SkillCall) (*executors.Result, error) {
	agent := strings.TrimSuffix(pin.Skill, "."+messageTool)
	in := invocation{intent: o, skill: Skill{Server: agent}, pin: pin}
	m, err := s.messageTo(ctx, o, agent, args)
	if err != nil {
		return nil, err
	}
	if in.input, err = m.JSON(); err != nil {
		return nil, executors.Fail(intents.MalformedArgs, "the message is not what a remote agent gets: "+err.Error())
	}
	server, err := exchange(o, false, func() (RemoteAgent, error) { return s.Dial(ctx, pin.Server) })
	if err != nil {
		return nil, s.failure(ctx, in, nil, err)
	}
	defer server.Close()
	meta := s.meta(in)
	meta.Digest = "" // the pin's is that of the agent's file
	began := s.Now()
	var answer Answer
	res, err := exchange(o, true, func() (*mcp.Result, error) {
		res, err := server.Call(ctx, messageTool, in.input, meta)
		in.took = s.Now().Sub(began)
		if err == nil {
			answer, err = m.AnswerOf(res)
		}
		return res, err
	})
	if err != nil {
		return nil, s.failure(ctx, in, res, err)
	}
	events := []intents.ReportedEvent{called(in, len(res.Data), false)}
	if o.Context.SessionID != "" {
		if err := s.Workflows.Keep(ctx, o, agent, answer.State, answer.Complete); err != nil {
			return nil, s.lost(in, events, err)
		}
	}
	answer.State = nil // the agent's own
	output, err := json.Marshal(answer)
	return &executors.Result{Value: catalog.SkillCallResult{Output: output}, Events: events}, err
}

// messageTo is the message, completed from the intent and its session. An agent that was asked, or
// works on a step of a plan, gets nothing of the conversation.
func (s *skills) messageTo(ctx context.Context, o *executors.Intent, agent string, args catalog.SkillCall) (m Message, err error) {
	data, given, err := o.Data(ctx, s.Blobs, "/input", args.Input)
	if err != nil {
		return m, err
	}
	if !given {
		return m, executors.Fail(intents.MalformedArgs, "there is no message")
	}
	defer data.Close()
	raw, err := data.ReadAll(MaxInput)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, executors.Fail(intents.MalformedArgs, "the input is no message to a remote agent")
	}
	for _, text := range []*string{&m.RawInput, &m.Summary, &m.DisplayName} {
		*text = visible.Prose(strings.ReplaceAll(*text, "\r\n", "\n"))
	}
	m.SessionID, m.RequestID, m.Employee = o.Context.SessionID, o.ID, o.Ticket.Actor.UserID
	m.History, m.State = []catalog.Turn{}, json.RawMessage(`{}`)
	if m.SessionID == "" {
		m.SessionID = o.Context.PlanID
		return m, nil
	}
	if t := o.Ticket.Scope; t != nil && t.Ask == "" && t.Revision == 0 {
		if m.History, err = s.Workflows.History(ctx, o); err != nil {
			return m, err
		}
	}
	state, err := s.Workflows.State(ctx, o, agent)
	if len(state) > 0 {
		m.State = state
	}
	return m, err
}

// JSON is the message as it is sent, if it keeps its schema.
func (m Message) JSON() (json.RawMessage, error) { return checked("handle_message", m) }

// AnswerOf reads the agent's answer to the message: an object, as structured content or as text, or
// plain text, which completes nothing. Its form fails nothing: what was dropped or replaced is in Odd. An answer
// without content, one that could name two users, and one that names another session, request or employee are
// refused.
func (m Message) AnswerOf(res *mcp.Result) (a Answer, err error) {
	wrong := func(reason string) error {
		return &mcp.Error{Kind: mcp.ErrSchema, Tool: messageTool, Reason: reason}
	}
	text := bytes.TrimSpace(res.Data)
	odd := slices.Clone(res.Odd)
	switch {
	case !res.IsJSON:
		if a.Content = strings.TrimSpace(res.Text); strings.HasPrefix(a.Content, "{") {
			odd = append(odd, "it begins as JSON and is none")
		}
	case text[0] != '{':
		a.Content, odd = string(text), append(odd, "it is no object")
	default:
		members, err := mcp.Members(text)
		if err != nil {
			return a, wrong("it can be read in two ways")
		}
		for name, is := range map[string]string{"session_id": m.SessionID, "request_id": m.RequestID, "employee_id": m.Employee} {
			var said string
			if raw, there := members[name]; there && (intents.Unambiguous(raw) != nil || json.Unmarshal(raw, &said) != nil || said != is) {
				return a, &mcp.Error{Kind: mcp.ErrPrincipal, Tool: messageTool, Reason: "it names another " + name}
			}
		}
		content, state := members["content"], members["workflow_state"]
		if content != nil && json.Unmarshal(content, &a.Content) != nil {
			a.Content, odd = string(content), append(odd, "content is no text")
		} else if content != nil && intents.Unambiguous(content) != nil {
			odd = append(odd, "content has characters that cannot be read")
		}
		if json.Unmarshal(members["workflow_complete"], &a.Complete) != nil {
			odd = append(odd, "workflow_complete is not true or false: the workflow goes on")
		}
		switch {
		case len(state) == 0 || string(state) == "null":
		case state[0] == '{' && intents.Unambiguous(state) == nil:
			a.State = state
		default:
			odd = append(odd, "workflow_state was dropped: it is no object, or can be read in two ways")
		}
	}
	if utf8.RuneCountInString(a.Content) > maxAnswerText {
		a.Content, odd = visible.Cut(a.Content, maxAnswerText), append(odd, fmt.Sprintf("content was cut: it has more than %d characters", maxAnswerText))
	}
	if _, err = checked("handle_message_result", a); err != nil {
		return a, wrong(err.Error())
	}
	a.Odd = odd
	return a, nil
}

// maxAnswerText bounds the content of an answer, in characters.
const maxAnswerText = 32768

// checked is a value as JSON that matches one of the schemas.
func checked(schema string, v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	s, err := schemas.Lookup(schemas.Base + schema + ".json")
	if err != nil {
		return nil, err
	}
	if broken := s.ValidateBytes(raw); len(broken) > 0 {
		return nil, fmt.Errorf("%s: %s", broken[0].Pointer, broken[0].Reason)
	}
	return raw, nil
}
