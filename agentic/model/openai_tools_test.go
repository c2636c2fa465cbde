package model

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func withTools() Request {
	r := ask()
	r.Tools = []Tool{
		{Name: "f", Description: "Does f.", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`)},
		{Name: "g"},
	}
	return r
}

// TestConversation sends a conversation with calls and their results in the format of the API.
func TestConversation(t *testing.T) {
	m := newMock(t, says("done"))
	r := withTools()
	r.Choice = ChoiceRequired
	r.Tools[1].Description = strings.Repeat("é", 1000)
	r.Tools = append(r.Tools, Tool{Name: "h", Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","anyOf":[{"required":["a"]}],"$defs":{"a":{}}}`)})
	r.Messages = []Message{
		{Role: RoleSystem, Text: "[Context]\nDate: today"},
		{Role: RoleUser, Text: "do it"},
		{Role: RoleAssistant, Text: "I try.", Calls: []Call{{"a", "f", `{"n": 1}`}, {"b", "no such.tool", `{"n":`}}, Opaque: &Opaque{Model: "openai:m"}},
		{Role: RoleTool, CallID: "a", Text: `{"label":"r1"}`},
		{Role: RoleTool, CallID: "b", Text: `{"error":{}}`},
		{Role: RoleAssistant, Calls: []Call{{"c", "", ""}, {"d", strings.Repeat("x", 70), "7"}}, Opaque: &Opaque{Model: "openai:m"}},
		{Role: RoleTool, CallID: "c"},
		{Role: RoleTool, CallID: "d", Text: "x"},
		{Role: RoleAssistant, Text: "Well."},
		{Role: RoleSystem, Text: "Use a tool."},
	}
	if _, err := newTestModel(t, m, nil).Respond(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	got := m.got[0]
	var roles []string
	var sent []Call
	for _, msg := range got.Messages {
		roles = append(roles, msg.Role)
		for _, c := range msg.ToolCalls {
			sent = append(sent, Call{c.ID, c.Function.Name, c.Function.Arguments})
		}
	}
	if d := cmp.Diff(strings.Fields("system user assistant tool tool assistant tool tool assistant system"), roles); d != "" {
		t.Error(d)
	}
	if first := *got.Messages[0].Content; first != r.System+"\n\n[Context]\nDate: today" {
		t.Errorf("the system prompt is %q", first)
	}
	if got.Messages[5].Content != nil || *got.Messages[2].Content != "I try." || *got.Messages[3].Content != `{"label":"r1"}` {
		t.Errorf("messages %+v", got.Messages)
	}
	if d := cmp.Diff([]Call{
		{"a", "f", `{"n": 1}`},
		{"b", "no_such_tool", `{"not_json":"{\"n\":"}`},
		{"c", "_", `{"not_json":""}`},
		{"d", strings.Repeat("x", 64), `{"not_json":"7"}`},
	}, sent); d != "" {
		t.Error(d)
	}
	var schemas []string
	for _, tool := range got.Tools {
		schemas = append(schemas, string(tool.Function.Parameters))
	}
	if d := cmp.Diff([]string{
		`{"properties":{"n":{"type":"integer","maximum":9007199254740993}},"type":"object"}`,
		`{"properties":{},"type":"object"}`,
		`{"$defs":{"a":{}},"properties":{},"type":"object"}`,
	}, schemas); d != "" {
		t.Error(d)
	}
	if got.ToolChoice != "required" || got.Tools[0].Function.Description != "Does f." {
		t.Errorf("request %+v", got)
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	o := newTestModel(t, newMock(t), nil)
	for _, r := range []Request{
		{Messages: []Message{{Role: "robot"}}},
		{Messages: []Message{{Role: RoleUser}}, Tools: []Tool{{Name: "f", Schema: json.RawMessage(`[`)}}},
	} {
		_, err := o.Respond(t.Context(), r, nil)
		wantError(t, err, false, "cannot be encoded")
	}
}

func TestCalls(t *testing.T) {
	tests := []struct {
		name   string
		finish string
		pieces []string
		want   []Call
	}{
		{"in pieces, the id once", "tool_calls", []string{
			`[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"n\""}}]`, `[{"index":0,"function":{"arguments":":1}"}}]`,
		}, []Call{{"a", "f", `{"n":1}`}}},
		{"two, interleaved", "tool_calls", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]`,
			`[{"index":1,"function":{"arguments":"{\"g\":"}}]`, `[{"index":0,"function":{"arguments":"{\"f\":1}"}}]`, `[{"index":1,"function":{"arguments":"2}"}}]`,
		}, []Call{{"a", "f", `{"f":1}`}, {"b", "g", `{"g":2}`}}},
		{"id and name with every piece", "tool_calls", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`, `[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]`,
			`[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`,
		}, []Call{{"a", "f", `{}`}}},
		{"a name in pieces", "tool_calls", []string{
			`[{"index":0,"id":"a","function":{"name":"find_","arguments":""}}]`, `[{"index":0,"function":{"name":"it","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{}"}}]`,
		}, []Call{{"a", "find_it", `{}`}}},
		{"whole, finished with stop", "stop", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`}, []Call{{"a", "f", "{}"}}},
		{"whole, all numbered 0", "tool_calls", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}]`, `[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"n\":2}"}}]`,
		}, []Call{{"a", "f", `{"n":1}`}, {"b", "f", `{"n":2}`}}},
		{"whole, without number and id", "stop", []string{
			`[{"function":{"name":"f","arguments":"{\"n\":1}"}},{"function":{"name":"f","arguments":"{\"n\":2}"}}]`, `[{"id":"","function":{"name":"g","arguments":"{}"}}]`,
		}, []Call{{"call00001", "f", `{"n":1}`}, {"call00002", "f", `{"n":2}`}, {"call00003", "g", `{}`}}},
		{"the same id twice, and a long one", "tool_calls", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}]`,
			`[{"index":2,"id":"chatcmpl-tool-0123456789abcdef0123456789abcdef","function":{"name":"f","arguments":"{}"}}]`,
		}, []Call{{"a", "f", "{}"}, {"call00001", "f", "{}"}, {"chatcmpl-tool-0123456789abcdef0123456789abcdef", "f", "{}"}}},
		{"no arguments", "tool_calls", []string{`[{"index":0,"id":"a","function":{"name":"f"}}]`}, []Call{{"a", "f", "{}"}}},
		{"arguments as an object", "tool_calls", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":{"n":1}}}]`}, []Call{{"a", "f", `{"n":1}`}}},
		{"arguments in a fence", "tool_calls", []string{
			"[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"```json\\n{\\\"n\\\"\"}}]",
			"[{\"index\":0,\"function\":{\"arguments\":\":1}\\n```\"}}]",
		}, []Call{{"a", "f", `{"n":1}`}}},
		{"no JSON", "tool_calls", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"n is 1"}}]`}, []Call{{"a", "f", "n is 1"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := newTestModel(t, newMock(t, calls(tt.finish, tt.pieces...)), nil).Respond(t.Context(), withTools(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, r.Calls); d != "" || r.Text != "" {
				t.Errorf("text %q\n%s", r.Text, d)
			}
		})
	}
}

// TestMadeUpIDs: a generated id is unique in the conversation.
func TestMadeUpIDs(t *testing.T) {
	r := withTools()
	r.Messages = append(r.Messages,
		Message{Role: RoleAssistant, Calls: []Call{{"call00001", "f", "{}"}, {"call00004", "f", "{}"}}},
		Message{Role: RoleTool, CallID: "call00001"}, Message{Role: RoleTool, CallID: "call00004"})
	m := newMock(t, calls("stop", `[{"function":{"name":"f","arguments":"{}"}}]`, `[{"index":1,"id":"call00001","function":{"name":"g","arguments":"{}"}}]`))
	resp, err := newTestModel(t, m, nil).Respond(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Call{{"call00003", "f", "{}"}, {"call00005", "g", "{}"}}, resp.Calls); d != "" {
		t.Error(d)
	}
}

func TestTextAndCalls(t *testing.T) {
	m := newMock(t, func(w http.ResponseWriter, _ *http.Request) {
		begin(w, "<think>which, one</think>\n\nI look.")
		called(w, `[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`)
		end(w, "tool_calls")
	})
	var h collector
	r, err := newTestModel(t, m, nil).Respond(t.Context(), withTools(), h.on)
	if err != nil {
		t.Fatal(err)
	}
	if r.Text != "I look." || h.text() != r.Text || len(r.Calls) != 1 || m.got[0].ToolChoice != "auto" {
		t.Errorf("%+v, heard %q", r, h.text())
	}
}

// TestStreamInBytes sends a reply byte by byte: packet boundaries do not matter.
func TestStreamInBytes(t *testing.T) {
	m := newMock(t, func(w http.ResponseWriter, _ *http.Request) {
		whole := httptest.NewRecorder()
		begin(whole, "<think>é, </think>I löok.")
		called(whole, `[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\""}}]`, `[{"index":0,"function":{"arguments":":1}"}}]`)
		end(whole, "tool_calls")
		w.Header().Set("Content-Type", "text/event-stream")
		for _, b := range whole.Body.Bytes() {
			if _, err := w.Write([]byte{b}); err != nil {
				t.Error(err)
			}
			w.(http.Flusher).Flush()
		}
	})
	r, err := newTestModel(t, m, nil).Respond(t.Context(), withTools(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Call{{"a", "f", `{"n":1}`}}, r.Calls); d != "" || r.Text != "I löok." || r.Usage.InputTokens != 11 {
		t.Errorf("%+v\n%s", r, d)
	}
}
