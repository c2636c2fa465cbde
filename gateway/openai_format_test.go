package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// A client gets the answer as the JSON object that it asks for, whole or as a stream, by either API.
// What is no such object is wrapped, or refused where a schema demands another form.
func TestAnswerFormats(t *testing.T) {
	answer, status := "", catalog.PlanComplete
	var w *world
	w = newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		say(bus.FrameToken, bus.ContentData{Text: answer[:1]})
		w.change(h.PlanID, func(p *catalog.PlanView) { p.Status, p.Response = status, answer })
		say(bus.FrameAnswer, bus.AnswerData{Response: answer})
		say(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: string(status)})
	})
	const schema = `{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`
	const object, ofSchema = `{"type":"json_object"}`, `{"type":"json_schema","json_schema":{"name":"count","strict":true,"schema":` + schema + `}}`
	for name, c := range map[string]struct {
		answer, format, want string
		status               catalog.PlanStatus
	}{
		"an object":            {`{"n":2}`, object, `{"n":2}`, catalog.PlanComplete},
		"in a fence":           {"```json\n{\"n\":2}\n```", object, `{"n":2}`, catalog.PlanComplete},
		"words":                {"Two.", object, `{"answer":"Two."}`, catalog.PlanComplete},
		"a list":               {`[2]`, object, `{"answer":"[2]"}`, catalog.PlanComplete},
		"a question back":      {`{"n":2}`, object, `{"answer":"{\"n\":2}"}`, catalog.PlanNeedsInput},
		"of the schema":        {`{"n":2}`, ofSchema, `{"n":2}`, catalog.PlanComplete},
		"not of the schema":    {`{"n":"two"}`, ofSchema, "", catalog.PlanComplete},
		"words and a schema":   {"Two.", ofSchema, "", catalog.PlanComplete},
		"a question, a schema": {`{"n":2}`, ofSchema, "", catalog.PlanNeedsInput},
		"text":                 {"Two.", `{"type":"text"}`, "Two.", catalog.PlanComplete},
	} {
		answer, status = c.answer, c.status
		body := `{"model":"planner","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"How many?"}],"response_format":` + c.format
		var got struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if c.want == "" {
			w.refusedOpenAI("POST", routeCompletions, body+`}`, bearer(), intents.ContractViolation, nil)
		} else if w.call("POST", routeCompletions, body+`}`, bearer(), &got); len(got.Choices) != 1 || got.Choices[0].Message.Content != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
		open := w.submits("plan.open")
		if said := catalog.TransientOf(open[len(open)-1].Transient()).AddedInstruction; strings.Contains(said, "JSON object") == (name == "text") || strings.Contains(said, schema) != (c.format == ofSchema) || !strings.HasSuffix(said, "Be brief.") {
			t.Errorf("%s: the agents are told %q", name, said)
		}
		_, _, chunks := w.streamed(routeCompletions, body+`,"stream":true}`)
		text, failed := "", false
		for _, chunk := range chunks[:len(chunks)-1] {
			var d struct {
				Code    intents.Code
				Choices []struct{ Delta struct{ Content string } }
			}
			if err := json.Unmarshal([]byte(chunk), &d); err != nil {
				t.Fatal(err)
			}
			if failed = failed || d.Code == intents.ContractViolation; len(d.Choices) > 0 {
				text += d.Choices[0].Delta.Content
			}
		}
		if text != c.want || failed != (c.want == "") {
			t.Errorf("%s, streamed: %q, failed: %t", name, text, failed)
		}
	}
	answer, status = `{"n":2}`, catalog.PlanComplete
	var got struct {
		Output []struct{ Content []struct{ Text string } }
	}
	w.call("POST", routeResponses, `{"model":"planner","input":"How many?","text":{"format":{"type":"json_schema","name":"count","schema":`+schema+`}}}`, bearer(), &got)
	if len(got.Output) != 1 || got.Output[0].Content[0].Text != answer {
		t.Errorf("a response: %+v", got)
	}
}

// Tools of the client that an answer need not call are ignored, and the answer says so.
func TestToolsOfTheClient(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	for more, want := range map[string][]string{
		`"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`:                 {"tools"},
		`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto"`:            {"tools"},
		`"functions":[{"name":"f"}],"function_call":"none","tools":[],"tool_choice":"required"`: {"functions"},
		`"tools":[]`: nil,
	} {
		var got struct {
			Choices []struct{ Message struct{ Content string } }
			Writ    runReply
		}
		resp := w.call("POST", routeCompletions, sampleOf(more), bearer(), &got)
		if d := cmp.Diff(want, got.Writ.Ignored); resp.StatusCode != http.StatusOK || got.Choices[0].Message.Content != "Two outlets." || d != "" {
			t.Errorf("%s: %d %+v %s", more, resp.StatusCode, got, d)
		}
	}
}

func sampleOf(more string) string {
	return `{"model":"planner","messages":[{"role":"user","content":"x"}],` + more + `}`
}
