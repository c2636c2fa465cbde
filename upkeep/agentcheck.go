package upkeep

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/state/agents"
)

// AgentCheck checks a remote agent before it is put in force: it talks with it as writ will, in
// sessions of its own.
type AgentCheck struct {
	Endpoint string
	File     []byte            // the agent's file in the registry; nil: not given
	Timeout  time.Duration     // of one answer
	Named    http.RoundTripper // reaches the endpoint, wherever that is
	Public   http.RoundTripper // reaches what is public
}

// Results of a point.
const (
	PointPass    = "pass"
	PointFail    = "fail"
	PointUnknown = "cannot see"
)

// AgentPoint is one of the requirements that an agent must meet before people use it.
type AgentPoint struct {
	Point int    `json:"point"`
	Title string `json:"title"`
	State string `json:"state"`
	Found string `json:"found,omitempty"`
	Do    string `json:"do,omitempty"` // unless it has passed
}

// agentPoints are all points in their order, with what to do.
var agentPoints = []AgentPoint{
	{Title: "it has the tool handle_message", Do: "serve MCP by streamable HTTP at the endpoint, with a tool of this name"},
	{Title: "its answers have content, workflow_complete and workflow_state", Do: "answer with a JSON object {content, workflow_complete, workflow_state?}, as text or structured content"},
	{Title: "it answers a message that is wrong", Do: "answer with isError and go on: no broken connection, no trace of the program"},
	{Title: "it answers in time", Do: "answer within 30 s, or say what you have"},
	{Title: "it ends its workflow", Do: "answer the last message with workflow_complete: true and without workflow_state"},
	{Title: "it goes on from its workflow_state", Do: "take back what you gave as workflow_state, and keep nothing of a session yourself"},
	{Title: "its file is sound", Do: "give the file: writ registry probe URL agents/NAME.yaml"},
	{Title: "its endpoint is public", Do: "serve it at a public name, or have the operator list it in agent_hosts"},
	{Title: "GET /health answers", Do: "answer GET /health of the same server with 200"},
	{Title: "its logs are JSON with request_id", Do: "look into its logs"},
	{Title: "it traces with OpenTelemetry", Do: "look for its spans in your collector"},
	{Title: "its contract tests pass", Do: "run them"},
	{Title: "its integration tests pass", Do: "run them against a writ with this agent"},
	{Title: "no personal data in logs and errors", Do: "name no values of a message in errors; look into its logs"},
	{Title: "messages at once do not mix", Do: "keep nothing of a message where another one finds it"},
}

// agentLook is one check in progress.
type agentLook struct {
	AgentCheck
	points []AgentPoint
	client *mcp.Client
}

// judge says that a point fails with an error, or passes, and what was found.
func (l *agentLook) judge(n int, found string, err error) {
	p := &l.points[n-1]
	if err != nil {
		p.State, p.Found = PointFail, err.Error()
		return
	}
	p.State, p.Found, p.Do = PointPass, found, ""
}

func (l *agentLook) unknown(n int, why string) { l.points[n-1].Found = why }

// Run checks every point. A point that depends on a failed one cannot be checked.
func (c AgentCheck) Run(ctx context.Context) []AgentPoint {
	l := &agentLook{AgentCheck: c, points: append([]AgentPoint{}, agentPoints...)}
	for i := range l.points {
		l.points[i].Point, l.points[i].State = i+1, PointUnknown
	}
	l.file()
	l.public(ctx)
	l.health(ctx)
	l.talk(ctx)
	return l.points
}

func (l *agentLook) file() {
	if l.File == nil {
		return
	}
	switch a, err := agents.Parse(l.File); {
	case err != nil:
		l.judge(7, "", err)
	case a.Type != agents.Remote || a.Endpoint != l.Endpoint:
		l.judge(7, "", fmt.Errorf("it is of type %q with endpoint %q", a.Type, a.Endpoint))
	default:
		l.judge(7, a.Name, nil)
	}
}

func (l *agentLook) public(ctx context.Context) {
	_, err := get(ctx, l.Public, l.Endpoint, l.Timeout)
	if refused, ok := errors.AsType[*egress.RefusedError](err); ok {
		l.judge(8, "", refused)
	} else if err != nil {
		l.unknown(8, err.Error())
	} else {
		l.judge(8, "", nil)
	}
}

func (l *agentLook) health(ctx context.Context) {
	at, err := url.Parse(l.Endpoint)
	if err == nil {
		at.Path, at.RawQuery = "/health", ""
		var status int
		if status, err = get(ctx, l.Named, at.String(), l.Timeout); err == nil && status != http.StatusOK {
			err = fmt.Errorf("HTTP %d", status)
		}
	}
	l.judge(9, "", err)
}

// get returns the status of a page.
func get(ctx context.Context, by http.RoundTripper, page string, timeout time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return 0, err
	}
	resp, err := egress.Client(by).Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// talk checks the points that need conversations.
func (l *agentLook) talk(ctx context.Context) {
	source, err := mcp.ParseURL(l.Endpoint)
	if err == nil {
		l.client, err = mcp.Dial(ctx, source, mcp.Options{Timeout: l.Timeout, MaxBytes: skills.MaxAnswer, RoundTripper: l.Named, Retries: -1})
	}
	if err != nil {
		l.judge(1, "", err)
		return
	}
	defer l.client.Close()
	tools, err := l.client.Manifests(ctx)
	if err == nil && !slices.ContainsFunc(tools, func(t mcp.Manifest) bool { return t.Name == "handle_message" }) {
		err = fmt.Errorf("it has %d tools of other names", len(tools))
	}
	if l.judge(1, "", err); err != nil {
		return
	}
	m := newMessage("Reset my password")
	began := time.Now()
	first, err := l.say(ctx, m)
	if errors.Is(err, context.DeadlineExceeded) {
		l.judge(4, "", fmt.Errorf("no answer in %s", clock.Words(l.Timeout)))
		return
	}
	l.judge(4, clock.Words(time.Since(began)), nil)
	if l.judge(2, "", err); err != nil {
		return
	}
	l.workflow(ctx, m, first)
	l.wrong(ctx)
	l.atOnce(ctx)
}

// newMessage is a message in a session of its own, by a person who does not exist.
func newMessage(text string) skills.Message {
	return skills.Message{
		SessionID: "check-" + rand.Text(), RequestID: "check-" + rand.Text(), Employee: "check", DisplayName: "Check", RawInput: text, Summary: text,
		Entities: json.RawMessage(`{}`), Language: "en", History: []catalog.Turn{}, State: json.RawMessage(`{}`),
	}
}

func (l *agentLook) say(ctx context.Context, m skills.Message) (a skills.Answer, err error) {
	raw, err := m.JSON()
	if err != nil {
		return a, err
	}
	res, err := l.client.Call(ctx, "handle_message", raw, mcp.CallMeta{IntentID: m.RequestID, Principal: m.Employee})
	if err != nil {
		return a, err
	}
	if !res.IsJSON {
		return a, errors.New("it answers with a plain text, which never ends a workflow")
	}
	if a, err = m.AnswerOf(res); err == nil && len(a.Odd) > 0 {
		err = errors.New(strings.Join(a.Odd, "; "))
	}
	return a, err
}

// workflow continues a conversation to its end.
func (l *agentLook) workflow(ctx context.Context, m skills.Message, first skills.Answer) {
	next := newMessage("Thank you, that is all. Goodbye.")
	next.SessionID = m.SessionID
	if len(first.State) > 0 {
		next.State = first.State
	}
	next.History = []catalog.Turn{
		{Role: catalog.SpeakerUser, Content: m.RawInput, Timestamp: time.Now().UTC()}, {Role: catalog.SpeakerAgent, Content: first.Content, Timestamp: time.Now().UTC()},
	}
	last, err := l.say(ctx, next)
	if err != nil {
		err = fmt.Errorf("with its own state: %w", err)
	}
	if len(first.State) > 0 {
		l.judge(6, "", err)
	} else {
		l.unknown(6, "its answer to \"Reset my password\" has none")
	}
	switch ends := first.Complete || last.Complete; {
	case first.Complete && len(first.State) > 0 || last.Complete && len(last.State) > 0:
		l.judge(5, "", errors.New("it ends with a workflow_state, which nobody would bring back"))
	case ends:
		l.judge(5, "", nil)
	default:
		l.unknown(5, "it goes on after \"Goodbye\"")
	}
}

// programTrace matches what an error shows of the program that made it.
var programTrace = regexp.MustCompile(`Traceback \(most recent|goroutine \d+ \[|\n\s+at \S+ ?\(`)

// wrong sends a message of the wrong form, and a valid one after it.
func (l *agentLook) wrong(ctx context.Context) {
	const mail = "zoe.check@example.com"
	raw := json.RawMessage(`{"raw_input":"I am ` + mail + `","employee_id":7,"turn_history":"none","workflow_state":"none"}`)
	res, err := l.client.Call(ctx, "handle_message", raw, mcp.CallMeta{IntentID: "check-" + rand.Text()})
	said := ""
	switch {
	case res != nil:
		said = res.Text
	case err != nil:
		said = err.Error()
	}
	refuses := errors.Is(err, mcp.ErrTool)
	if refuses && strings.Contains(said, mail) {
		l.judge(14, "", errors.New("its error repeats the mail address of a message"))
	} else {
		l.unknown(14, "its errors name nobody; its logs are not here")
	}
	_, after := l.say(ctx, newMessage("Reset my password"))
	switch {
	case err != nil && !refuses:
	case programTrace.MatchString(said):
		err = errors.New("its error shows a trace of its program")
	case after != nil:
		err = fmt.Errorf("the next message: %w", after)
	default:
		err = nil // it has refused the message, as it should
	}
	l.judge(3, "", err)
}

// manyAtOnce is how many messages are sent at once.
const manyAtOnce = 8

// atOnce sends messages of several sessions at once. Each has a unique word.
func (l *agentLook) atOnce(ctx context.Context) {
	words, said, errs := make([]string, manyAtOnce), make([]string, manyAtOnce), make([]error, manyAtOnce)
	var sent sync.WaitGroup
	for i := range words {
		words[i] = rand.Text()
		sent.Go(func() {
			var a skills.Answer
			a, errs[i] = l.say(ctx, newMessage("Reset the password of "+words[i]))
			said[i] = a.Content + string(a.State)
		})
	}
	sent.Wait()
	err := errors.Join(errs...)
	for i, text := range said {
		for j, word := range words {
			if err == nil && i != j && strings.Contains(text, word) {
				err = errors.New("an answer has what another session's message said")
			}
		}
	}
	l.judge(15, fmt.Sprintf("%d at once", manyAtOnce), err)
}
