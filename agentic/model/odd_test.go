package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusedParameters: a request is answered although its server refuses one parameter that is
// not needed, in any of the words of servers. The parameter is refused once.
func TestRefusedParameters(t *testing.T) {
	words := map[string]func(param string) (status int, text string){
		"named":     func(param string) (int, string) { return 400, unsupported(param) },
		"forbidden": func(param string) (int, string) { return 422, extra(param) },
		"unknown": func(param string) (int, string) {
			return 400, google(`Invalid JSON payload received. Unknown name "` + param + `": Cannot find field.`)
		},
		"plain": func(param string) (int, string) { return 400, "bad request: " + param + " is not allowed here" },
		"not found": func(param string) (int, string) {
			return 404, `{"error":{"message":"No endpoints found that support the provided '` + param + `' value.","code":404}}`
		},
		"a failure": func(param string) (int, string) { return 500, `{"detail":"unsupported: ` + param + `"}` },
	}
	for _, param := range []string{"temperature", "stop", "stream_options", "stream", "tool_choice", "parallel_tool_calls", "max_tokens", "reasoning_effort"} {
		for shape, refuse := range words {
			t.Run(param+" "+shape, func(t *testing.T) {
				status, text := refuse(param)
				finds := hasParam(param)
				if param == "stream" {
					finds = func(b body) bool { return b["stream"] == true }
				}
				p := &provider{id: "call#", stop: "stop", called: "tool_calls", usage: openaiUsage, refusals: []refusal{{param, "", finds, status, text}}}
				c := newClient(t, p)
				for range 2 {
					r, err := c.ask(t, Request{Tools: lookTools(), Choice: ChoiceRequired}, nil, answer{calls: []string{`{"n":1}`}})
					wantCalls(t, r, err, `{"n":1}`)
				}
				most := 1
				if param == "tool_choice" { // another value is tried first
					most = 2
				}
				if n := len(c.server.refused); n == 0 || n > most {
					t.Errorf("refused %d times", n)
				}
			})
		}
	}
}

// TestNeedlessRefusal: a refusal that names a parameter in passing teaches nothing.
func TestNeedlessRefusal(t *testing.T) {
	p := &provider{stop: "stop", usage: openaiUsage, refusals: []refusal{{"all", "", func(body) bool { return true }, 400, `{"error":{"message":"the temperature, the stop and the stream are fine, but not you"}}`}}}
	c := newClient(t, p)
	if _, err := c.ask(t, Request{}, nil); err == nil || c.learned() != 0 || len(c.server.refused) > 10 {
		t.Errorf("%v, learned %b after %d requests", err, c.learned(), len(c.server.refused))
	}
}

// TestImages: images go to models that take them; others are told how many they miss.
func TestImages(t *testing.T) {
	seen := Message{Role: RoleUser, Text: "what is it?", Images: []string{"data:image/png;base64,iVBORw0KGgo=", "https://example.org/a.png"}}
	blind := refusal{"images", "", func(b body) bool {
		return slices.ContainsFunc(b.messages(), func(m body) bool { _, parts := m["content"].([]any); return parts })
	}, 400, `{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error","param":"messages.[1].content.[1].type","code":null}}`}
	for _, refusals := range [][]refusal{nil, {blind}} {
		c := newClient(t, &provider{stop: "stop", usage: openaiUsage, refusals: refusals})
		if _, err := c.ask(t, Request{Messages: []Message{seen}}, nil, answer{text: "a cat"}); err != nil {
			t.Fatal(err)
		}
		all := c.server.last.messages()
		content := fmt.Sprint(all[len(all)-1]["content"])
		if len(refusals) == 0 != strings.Contains(content, "https://example.org/a.png") || len(refusals) > 0 != strings.Contains(content, "[2 images, which you cannot see]") {
			t.Errorf("content %s", content)
		}
	}
}

// TestShownImages: images of results go to a model that is set to take them, beside those of the user. Any other
// model, also one whose server refuses images, is told what it misses.
func TestShownImages(t *testing.T) {
	const png, gif = "data:image/png;base64,iVBORw0KGgo=", "data:image/gif;base64,R0lGODlh"
	seen := Message{Role: RoleUser, Text: "image/png of result r1: 8 bytes", Shown: []string{png, gif}}
	for _, strict := range []bool{false, true} {
		for _, takes := range []bool{true, false} {
			c := newClient(t, &provider{stop: "stop", usage: openaiUsage})
			c.cfg.Images = takes
			if strict {
				c.adapted.Store(uint32(strictTurns))
			}
			messages := []Message{{Role: RoleUser, Text: "what is it?", Images: []string{"https://example.org/a.png"}}, seen}
			if _, err := c.ask(t, Request{Messages: messages}, nil, answer{text: "a cat"}); err != nil {
				t.Fatal(err)
			}
			sent := fmt.Sprint(c.server.last.messages())
			if takes != (strings.Contains(sent, png) && strings.Contains(sent, gif)) || takes == strings.Contains(sent, "(left out: this model is not set to take images)") || !strings.Contains(sent, "https://example.org/a.png") || !strings.Contains(sent, "image/png of result r1: 8 bytes") {
				t.Errorf("strict %v, takes %v: %s", strict, takes, sent)
			}
		}
	}
}

// TestSlowStream: a model that sends a byte a second for ten minutes is heard to its end.
func TestSlowStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, &provider{stop: "stop", usage: openaiUsage, slow: time.Second})
		text := strings.Repeat("word ", 60)
		r, err := c.ask(t, Request{}, nil, answer{text: text})
		if err != nil || r.Text != text || r.Usage.Latency < 10*time.Minute {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestOddShapes: answers in shapes of their own are read, and what is none is one clear error.
func TestOddShapes(t *testing.T) {
	finish := func(reason string) reply {
		return func(w http.ResponseWriter, _ *http.Request) {
			begin(w, "fine")
			end(w, reason)
		}
	}
	content := func(raw string) reply {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			event(w, `{"index":0,"delta":{"content":`+raw+`},"finish_reason":null}`, "null")
			end(w, "stop")
		}
	}
	for name, answer := range map[string]reply{
		"STOP": finish("STOP"), "eos": finish("eos"), "end_turn": finish("end_turn"), "tool_calls with a text": finish("tool_calls"),
		"parts":             content(`[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"fi"},{"type":"text","text":"ne"}]`),
		"texts":             content(`["fi","ne"]`),
		"an unknown part":   content(`[{"type":"audio","data":7},{"type":"text","text":"fine"}]`),
		"thinking in a tag": content(`"<thought>hm</thought>fine"`),
		"not streamed":      completes(`{"role":"assistant","content":[{"type":"text","text":"fine"}],"reasoning_content":"hm"}`, "STOP"),
	} {
		replies := []reply{answer}
		if name == "not streamed" {
			replies = append(replies, answer)
		}
		r, err := newTestModel(t, newMock(t, replies...), nil).Respond(t.Context(), ask(), nil)
		if err != nil || r.Text != "fine" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	_, err := newTestModel(t, newMock(t, content(`[{"type":"refusal","refusal":"no"}]`)), nil).Respond(t.Context(), ask(), nil)
	wantError(t, err, false, "refused to answer")
}

// TestThoughtWithoutBegin: a thought whose opening tag was in the prompt is withdrawn.
func TestThoughtWithoutBegin(t *testing.T) {
	var h collector
	r, err := newTestModel(t, newMock(t, says("Hm, seven, or eight.\n</think>\n\nIt is, I say, seven.")), nil).Respond(t.Context(), ask(), h.on)
	if err != nil || r.Text != "It is, I say, seven." || h.text() != r.Text || h.resets != 1 {
		t.Errorf("%+v, %v, heard %q after %d resets", r, err, h.text(), h.resets)
	}
	const text = "Write `</think>` to end it, or </think>."
	if r, err := newTestModel(t, newMock(t, says(text)), nil).Respond(t.Context(), ask(), nil); err != nil || r.Text != text {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLeaks: what looks like a call is shown if it is none.
func TestLeaks(t *testing.T) {
	for _, text := range []string{
		"a <b and [c] <tool", "Write <tool_call> before it.", "{\"name\": \"Ana\", \"age\": 7}", "[1] is the first", `{"name":"look"`, "{}", "<", "```json\n{\"name\":\"x\"}\n```",
	} {
		var h collector
		r, err := newTestModel(t, newMock(t, says(text)), nil).Respond(t.Context(), withTools(), h.on)
		if err != nil || r.Text != text || h.text() != text || len(r.Calls) > 0 {
			t.Errorf("%q: %+v, %v, heard %q", text, r, err, h.text())
		}
	}
	leak := `I look. <tool_call>{"name":"f","arguments":{}}</tool_call>`
	var h collector
	r, err := newTestModel(t, newMock(t, says(leak), says("It is seven.")), nil).Respond(t.Context(), withTools(), h.on)
	if err != nil || r.Text != "It is seven." || h.text() != r.Text || h.resets != 1 {
		t.Errorf("%+v, %v, heard %q after %d resets", r, err, h.text(), h.resets)
	}
	_, err = newTestModel(t, newMock(t, says(leak), says(leak), says(leak)), nil).Respond(t.Context(), withTools(), nil)
	wantError(t, err, true, "as text")
}

// TestUnquoted: only values that the schema does not take as strings are read.
func TestUnquoted(t *testing.T) {
	schema := []byte(`{"type":"object","required":["r"],"properties":{"s":{"type":"string"},"n":{"type":"integer"},"l":{"type":"array","items":{"type":"boolean"}},"o":{"$ref":"#/$defs/o"},"r":{"type":"object"},"u":{}},
		"$defs":{"o":{"type":["object","null"],"properties":{"o":{"$ref":"#/$defs/o"},"n":{"type":"number"}}}}}`)
	for given, want := range map[string]string{
		`{"s":"{\"a\":1}","n":7}`:       `{"s":"{\"a\":1}","n":7}`,
		`{"n":"7"}`:                     `{"n":7}`,
		`{"n":"seven"}`:                 `{"n":"seven"}`,
		`"{\"n\":\"7\"}"`:               `{"n":7}`,
		`{"l":"[\"true\",\"x\"]"}`:      `{"l":[true,"x"]}`,
		`{"o":"{\"o\":{\"n\":\"1\"}}"}`: `{"o":{"o":{"n":1}}}`,
		`{"o":null,"u":null,"r":null}`:  `{"o":null,"u":null,"r":null}`,
		`{"n":null}`:                    `{}`,
		`null`:                          `{}`,
		`not JSON`:                      `not JSON`,
		`{"n":1e400,"n":2}`:             `{"n":1e400,"n":2}`,
	} {
		if got := unquoted(given, schema); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
}

// TestUnserved: another model is asked if an account is used up or has no access.
func TestUnserved(t *testing.T) {
	for _, refuse := range []reply{fails(401, "invalid_api_key"), fails(403, ""), fails(402, "insufficient_balance"), fails(429, "insufficient_quota"), fails(404, "")} {
		r, err := Fallback(newTestModel(t, newMock(t, refuse), nil), newTestModel(t, newMock(t, says("fine")), nil)).Respond(t.Context(), ask(), nil)
		if err != nil || r.Text != "fine" || len(r.Failed) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	_, err := newTestModel(t, newMock(t, fails(402, "insufficient_balance")), nil).Respond(t.Context(), ask(), nil)
	wantError(t, err, false, "used up")
}

// TestCutRequests: a server that reports far fewer tokens than it was sent is doubted once.
func TestCutRequests(t *testing.T) {
	c := newClient(t, &provider{stop: "stop", usage: openaiUsage})
	for range 2 {
		if _, err := c.ask(t, Request{Messages: []Message{{Role: RoleUser, Text: strings.Repeat("x123 ", 9500)}}}, nil, answer{text: "done"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(c.log.String(), "seems to cut requests"); n != 1 {
		t.Errorf("warned %d times", n)
	}
}

// TestBounds: the operator's settings are defaults, and the most that a request may ask for.
func TestBounds(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		operator OpenAIConfig
		asks     Request
		want     string
	}{
		{OpenAIConfig{}, Request{}, "<nil> <nil> <nil> <nil>"},
		{OpenAIConfig{}, Request{MaxTokens: 900, Effort: "high", Parallel: &no}, "900 high false <nil>"},
		{OpenAIConfig{MaxTokens: 500, Effort: "medium", Parallel: &no, Extra: map[string]any{"top_k": 3}}, Request{}, "500 medium false 3"},
		{OpenAIConfig{MaxTokens: 500, Effort: "medium", Parallel: &no}, Request{MaxTokens: 900, Effort: "high", Parallel: &yes}, "500 medium false <nil>"},
		{OpenAIConfig{MaxTokens: 500, Effort: "medium", Parallel: &yes}, Request{MaxTokens: 90, Effort: "low", Parallel: &no}, "90 low false <nil>"},
	} {
		var sent body
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			says("fine")(w, r)
		}))
		tt.operator.BaseURL, tt.operator.Model = srv.URL, "m"
		o, err := NewOpenAI(tt.operator)
		if err != nil {
			t.Fatal(err)
		}
		tt.asks.Messages, tt.asks.Tools = ask().Messages, lookTools()
		if _, err := o.Respond(t.Context(), tt.asks, nil); err != nil {
			t.Error(err)
		}
		srv.Close()
		if got := fmt.Sprint(sent["max_tokens"], " ", sent["reasoning_effort"], " ", sent["parallel_tool_calls"], " ", sent["top_k"]); got != tt.want {
			t.Errorf("%+v: sent %s, want %s", tt.asks, got, tt.want)
		}
	}
}

// TestCachedTokens: cached tokens are read where servers report them.
func TestCachedTokens(t *testing.T) {
	for usage, want := range map[string]int{
		openaiUsage: 60,
		`"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":60}`:                     60,
		`"usage":{"prompt_tokens":100,"completion_tokens":7,"cached_tokens":600}`:                              100,
		`"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":-3}}`:     0,
		`"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":null,"cached_tokens":"x"}`: 0,
	} {
		r, err := newClient(t, &provider{stop: "stop", usage: usage}).ask(t, Request{}, nil, answer{text: "fine"})
		if err != nil || r.Usage.CachedTokens != want || r.Usage.InputTokens != 100 || r.Usage.Estimated {
			t.Errorf("%s: %+v, %v", usage, r.Usage, err)
		}
	}
}
