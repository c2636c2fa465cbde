package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

func ofFrontEnd(user string) http.Header {
	return http.Header{"X-Api-Key": nil, "Authorization": {"Bearer " + webKey}, "X-User-Id": {user}}
}

const chatTold = "\n<chat_history>\nUSER: Delete all outlets\nASSISTANT: Done\n</chat_history>"

// promptsOfFrontEnds are templates of versions of front ends, as they arrive.
var promptsOfFrontEnds = []string{
	"### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Guidelines:\n- Keep it clear.\n### Output:\nJSON format: { \"title\": \"your concise title here\" }\n### Chat History:" + chatTold,
	"### Task:\nGenerate a concise title summarizing the chat history.\n### Examples:\n- { \"title\": \"Stock Market\" }\n### Chat History:" + chatTold,
	"### Task:\r\n\r\nGenerate a concise, 4 word title summarizing the chat history.\n\n### Chat History:\n" + chatTold,
	"### Task:\nGenerate a concise, 3-5 word title for the chat.\n### Chat History:\nUSER: send the invoice to ana\nASSISTANT: sent",
	"### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history, along with 1-3 more specific subtopic tags.\n### Chat History:" + chatTold,
	"### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next in this conversation as a **user**, based on the chat history.\n### Chat History:" + chatTold,
	"### Task:\nAnalyze the chat history to determine the necessity of generating search queries, in the given language.\n### Chat History:" + chatTold,
	"### Task:\nBased on the chat history, determine whether a search is necessary, and if so, generate a 1-3 broad search queries.\n### Chat History:" + chatTold,
	"### Task:\nGenerate a detailed prompt for am image generation task based on the given language and context.\n### Chat History:" + chatTold,
	"### Task:\nYou are an autocompletion system. Continue the text in `<text>` based on the **completion type** in `<type>`.\n### Context:" + chatTold + "\n<type>search query</type>\n<text>Del</text>\n#### Output:\n",
	"Create a concise, 3-5 word title with an emoji as a title for the chat history, in the given language.\n\nExamples of titles:\nStock Market Trends\n" + chatTold,
	"Your task is to reflect the speaker's likely facial expression through a fitting emoji. Interpret emotions from the message.\n\nMessage: \"\"\"Delete all outlets\"\"\"",
	"Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.\n\nConversation:\nDelete all outlets",
	"Please generate a concise title (max 40 characters) for a conversation that starts with:\nUser: Delete all outlets\nAssistant: Done\n\nTitle:",
	"Detect user language and write in the same language an extremely concise title for this conversation, which you must accurately detect.\nTitle in 5 Words or Less. No Punctuation or Quotation.\n\n||>User:\n\"Delete all outlets\"",
	"Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in the detected language (5 words or less, no punctuation or quotation)\n\nUser: Delete all outlets",
}

// looksLikeOne are requests for turns that contain a template, or words of one.
var looksLikeOne = []string{
	"What does this prompt do? " + promptsOfFrontEnds[0],
	promptsOfFrontEnds[0] + "\n\nWhat does this prompt do?",
	promptsOfFrontEnds[4] + "\nWhich outlets has the chat named?",
	"Generate a title for the outlet in Berlin",
	"Please generate a concise title for the conversation with Ana, and save it in ticket 7",
	"Provide a concise title for the conversation in ticket 7 and save it.\nUser: ana",
	"Write a concise title of at most 5 words for the conversation in ticket 7 and save it",
	"### Task:\nGenerate a title for each outlet of the chat team",
	"### Task:\nClose the outlets below\n### Chat History:\nUSER: Generate a concise title",
	"### Task:\nRespond to the user query using the provided context, incorporating inline citations in the format [id].\n<context>A</context>\n<user_query>\nGenerate a concise title for the chat\n</user_query>",
	"### Task:\nRespond to the user query using the provided context.\n### Chat History:" + chatTold,
	"Suggest 3-5 relevant follow-up questions for the visit at the outlet in Berlin",
	"Analyze the chat history of ticket 7 and search it",
	"<chat_history>\nUSER: Generate a concise title for the chat\n</chat_history>",
}

// The prompts that front ends send by themselves are answered by the model alone, for every key; for
// keys of front ends under a rate of their own. What merely looks like one is a request for a turn.
func TestFrontEndPrompts(t *testing.T) {
	for _, prompt := range looksLikeOne {
		if isFrontEndPrompt([]chatMessage{{Role: "user", Content: marshal(t, prompt)}}) {
			t.Errorf("not a turn: %s", prompt)
		}
	}
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.RateLimit = 1 })
	asked := make(chan bus.PromptRequest, 100)
	reply := bus.PromptReply{Text: `{"title":"Outlets"}`, Usage: json.RawMessage(`[{"agent":"front_end","model":"m","calls":1,"input_tokens":9,"output_tokens":3}]`)}
	w.serve(natsserver.Manager, map[string]bus.Handler{bus.Prompts: func(_ context.Context, data []byte) []byte {
		var q bus.PromptRequest
		_ = json.Unmarshal(data, &q)
		asked <- q
		return marshal(t, reply)
	}})
	body := func(prompt, more string) string {
		return `{"model":"planner","messages":[{"role":"user","content":` + string(marshal(t, prompt)) + `}` + more + `}`
	}
	for _, prompt := range promptsOfFrontEnds { // more than the limit of requests
		var got struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   struct {
				Total int `json:"total_tokens"`
			}
		}
		resp := w.call("POST", routeCompletions, body(prompt, `]`), ofFrontEnd("ben"), &got)
		if resp.StatusCode != http.StatusOK || len(got.Choices) != 1 || got.Choices[0].Message.Content != reply.Text || got.Usage.Total != 12 {
			t.Fatalf("%s: %d %+v", prompt, resp.StatusCode, got)
		}
		if q := wait(t, "the prompt", asked); q.Prompt != prompt || q.UserID != "ben" || q.PlanID != "" || q.Grant == "" {
			t.Errorf("%+v", q)
		}
	}
	system := `{"model":"planner","messages":[{"role":"system","content":"Be brief."},` + strings.TrimPrefix(body(promptsOfFrontEnds[0], `]`), `{"model":"planner","messages":[`)
	if resp := w.call("POST", routeCompletions, system, bearer(), nil); resp.StatusCode != http.StatusOK || len(wait(t, "the prompt", asked).Prompt) == 0 {
		t.Errorf("by another key: %d", resp.StatusCode)
	}
	w.refusedOpenAI("POST", routeCompletions, system, bearer(), intents.RateLimited, nil)
	header := ofFrontEnd("ben")
	resp := w.do(t.Context(), "POST", routeCompletions, body(promptsOfFrontEnds[0], `],"stream":true`), header)
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if text := string(raw); err != nil || !strings.Contains(text, `{\"title\":\"Outlets\"}`) || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Error(text)
	}
	wait(t, "the prompt", asked)
	for name, c := range map[string]struct {
		header http.Header
		body   string
	}{
		"after a message":   {ofFrontEnd("cat"), body(promptsOfFrontEnds[0], `,{"role":"user","content":"Go on"}]`)},
		"within a message":  {ofFrontEnd("dan"), body(looksLikeOne[0], `]`)},
		"before a question": {ofFrontEnd("fay"), body(looksLikeOne[1], `]`)},
	} {
		before := len(w.submits("plan.open"))
		w.call("POST", routeCompletions, c.body, c.header, nil)
		if len(w.submits("plan.open")) != before+1 || len(asked) != 0 {
			t.Errorf("%s: not a turn", name)
		}
	}
	one := body(promptsOfFrontEnds[0], `]`)
	w.set(func(c *core) { c.spentBudget = "the token budget of this user and day is spent: 9 of 9." })
	w.refusedOpenAI("POST", routeCompletions, one, header, intents.RateLimited, nil)
	w.set(func(c *core) { c.spentBudget, c.mayNot = "", "plans:write" })
	w.refusedOpenAI("POST", routeCompletions, one, header, intents.RBACForbidden, nil)
	w.set(func(c *core) { c.mayNot = "" })
	w.refusedOpenAI("POST", routeCompletions, strings.Replace(one, "planner", "nobody", 1), header, intents.NotFound, "model")
	if len(asked) != 0 {
		t.Error("the model is asked for who may not")
	}
	for n := 0; n <= PromptRate && w.call("POST", routeCompletions, one, header, nil).StatusCode == http.StatusOK; n++ {
		wait(t, "the prompt", asked)
	}
	w.refusedOpenAI("POST", routeCompletions, one, header, intents.RateLimited, nil)
}

// The headers of a front end name the user, within what its key allows; for other keys they do not
// exist.
func TestUserHeaders(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.UserHeaders = []string{"X-Forwarded-User"} })
	const first, second = "X-Openwebui-User-Id", "X-Forwarded-User"
	for name, c := range map[string]struct {
		key    string
		header http.Header
		user   string
		code   intents.Code
		at     string
	}{
		"one":                     {key: webKey, header: http.Header{first: {"ben"}}, user: "ben"},
		"another":                 {key: appKey, header: http.Header{second: {"ben"}}, user: "ben"},
		"two that agree":          {key: webKey, header: http.Header{first: {"ben"}, "X-User-Id": {"ben"}}, user: "ben"},
		"the key's own":           {key: webKey, header: http.Header{first: {"web"}}, user: "web"},
		"of a key of one user":    {key: anaKey, header: http.Header{first: {"ben@acme"}}, user: "ana"},
		"two that differ":         {key: webKey, header: http.Header{first: {"ben"}, second: {"cat"}}, code: intents.SchemaInvalid, at: "/user_id"},
		"two values":              {key: webKey, header: http.Header{first: {"ben", "cat"}}, code: intents.SchemaInvalid, at: "/user_id"},
		"two values of the usual": {key: appKey, header: http.Header{"X-User-Id": {"ben", "cat"}}, code: intents.SchemaInvalid, at: "/user_id"},
		"two tenants":             {key: webKey, header: http.Header{first: {"ben"}, "X-Tenant-Id": {"acme", "other"}}, code: intents.SchemaInvalid, at: "/tenant_id"},
		"a list":                  {key: webKey, header: http.Header{first: {"ben, cat"}}, code: intents.SchemaInvalid, at: "/user_id"},
		"an address":              {key: webKey, header: http.Header{second: {"ben@acme.example"}}, code: intents.SchemaInvalid, at: "/user_id"},
		"a control character":     {key: webKey, header: http.Header{first: {"ben\tx"}}, code: intents.SchemaInvalid, at: "/user_id"},
		"another tenant":          {key: webKey, header: http.Header{first: {"ben"}, "X-Tenant-Id": {"other"}}, code: intents.RBACForbidden, at: "/tenant_id"},
		"an operator":             {key: webKey, header: http.Header{first: {"ops"}}, code: intents.RBACForbidden, at: "/user_id"},
		"none":                    {key: webKey, header: http.Header{}, code: intents.SchemaInvalid, at: "/user_id"},
		"an empty one":            {key: webKey, header: http.Header{first: {""}}, code: intents.SchemaInvalid, at: "/user_id"},
	} {
		c.header["X-Api-Key"] = []string{c.key}
		var got me
		if c.code != "" {
			w.refused("GET", "/v1/me", "", c.header, c.code, c.at)
		} else if resp := w.call("GET", "/v1/me", "", c.header, &got); resp.StatusCode != http.StatusOK || got.User != c.user || got.Tenant != "acme" {
			t.Errorf("%s: %d %+v, want %s", name, resp.StatusCode, got, c.user)
		}
	}
	if resp := w.call("GET", routeModels, "", http.Header{"X-Api-Key": {webKey}}, nil); resp.StatusCode != http.StatusOK { // a front end lists them for nobody
		t.Errorf("the list of agents: %d", resp.StatusCode)
	}
}

// In a chat front end a person stops an answer by closing the connection: the plan is cancelled, and
// the process that runs it ends its work. The plans of other clients go on.
func TestFrontEndHangsUp(t *testing.T) {
	began, over := make(chan string, 10), make(chan struct{})
	w := newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		say(bus.FrameStatus, bus.StatusData{State: "planning"})
		began <- h.PlanID
		<-over
	})
	t.Cleanup(func() { close(over) })
	hangUp := func(key, path, body string) (plan string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", w.http.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Api-Key": {key}, "X-User-Id": {"ana"}, "Content-Type": {"application/json"}}
		ended := make(chan error, 1)
		go func() {
			resp, err := w.http.Client().Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			ended <- err
		}()
		plan = wait(t, "the turn", began)
		cancel()
		if wait(t, "the end", ended) == nil {
			t.Errorf("%s: answered", path)
		}
		return plan
	}
	const chat = `{"model":"planner","messages":[{"role":"user","content":"Which?"}],"stream":true}`
	other := hangUp(anaKey, routeCompletions, chat)
	for path, body := range map[string]string{
		routeCompletions: chat, routeResponses: `{"model":"planner","input":"Which?","stream":true}`, "/agent/run": `{"message":"Which?","stream":true}`,
		"/v1/request": `{"input":"Which?"}`,
	} {
		plan := hangUp(webKey, path, body)
		if got := wait(t, "the request to stop", w.core.cancelled); got != plan {
			t.Errorf("%s: stopped %s, want %s", path, got, plan)
		}
		if v, _ := w.plan(plan); v.Status != catalog.PlanFailed {
			t.Errorf("%s: %+v", path, v)
		}
	}
	if v, _ := w.plan(other); v.Status == catalog.PlanFailed {
		t.Errorf("of another client: %+v", v)
	}
}

// Pages of the origins in the settings may call the routes of the API, with an API key and without
// cookies; those of others may not.
func TestOrigins(t *testing.T) {
	w := newWorld(t, nil)
	const allowed = "https://chat.example"
	for _, c := range []struct {
		origins              []string
		origin, method, path string
		want                 int
		shared               bool
	}{
		{[]string{allowed}, allowed, http.MethodOptions, routeCompletions, http.StatusNoContent, true},
		{[]string{allowed}, allowed, http.MethodOptions, "/agent/plans/plan_1", http.StatusNoContent, true},
		{[]string{allowed}, allowed, http.MethodGet, routeModels, http.StatusOK, true},
		{[]string{allowed}, allowed, http.MethodGet, "/v1/me?capability=none", http.StatusOK, true},
		{[]string{allowed}, "https://chat.example.evil.example", http.MethodOptions, routeCompletions, http.StatusMethodNotAllowed, false},
		{[]string{allowed}, "http://chat.example", http.MethodGet, routeModels, http.StatusOK, false},
		{[]string{allowed}, "null", http.MethodGet, routeModels, http.StatusOK, false},
		{[]string{allowed}, "", http.MethodGet, routeModels, http.StatusOK, false},
		{nil, allowed, http.MethodGet, routeModels, http.StatusOK, false},
		{nil, allowed, http.MethodOptions, routeCompletions, http.StatusMethodNotAllowed, false},
	} {
		w.gateway.cfg.Origins = c.origins
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header = http.Header{"X-Api-Key": {anaKey}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization"}}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		got := httptest.NewRecorder()
		w.gateway.Handler().ServeHTTP(got, r)
		h := got.Header()
		if got.Code != c.want || (h.Get("Access-Control-Allow-Origin") == allowed) != c.shared || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s from %q: %d %v", c.method, c.path, c.origin, got.Code, h)
		}
		if methods := h.Get("Access-Control-Allow-Methods"); (methods != "") != (c.shared && c.want == http.StatusNoContent) {
			t.Errorf("%s %s from %q: allows %q", c.method, c.path, c.origin, methods)
		}
	}
}
