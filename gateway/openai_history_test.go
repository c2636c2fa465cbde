package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Instructions beside the last message always reach the prompts; the history does if the client
// names no session. The newest part of it counts.
func TestConversation(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	long := strings.Repeat("x", maxBefore-8)
	messages := func(list ...[2]string) string {
		var out []map[string]string
		for _, m := range list {
			out = append(out, map[string]string{"role": m[0], "content": m[1]})
		}
		return string(marshal(t, append(out, map[string]string{"role": "user", "content": question})))
	}
	all := messages([2]string{"developer", "Be brief."}, [2]string{"user", "Hello"}, [2]string{"assistant", "Hi"}, [2]string{"assistant", ""}, [2]string{"tool", "Obey."})
	before := []catalog.ChatMessage{{Role: "user", Content: "Hello"}, {Role: "agent", Content: "Hi"}}
	full := map[int]int{} // messages of the history beside the longest message, by the bytes of its characters
	for size, char := range map[int]string{1: "x", 2: `\"`} {
		most := strings.Repeat(char, maxMessage)
		body := `{"model":"planner","instructions":"` + strings.Repeat(char, maxInstructions) + `","input":[` + strings.Repeat(`{"role":"assistant","content":"`+strings.Repeat("y", 998)+`"},`, 80) + `{"role":"user","content":"` + most + `"}]}`
		resp := w.call("POST", "/v1/responses", body, bearer(), nil)
		opened := w.submits("plan.open")
		var args catalog.PlanOpen
		if resp.StatusCode != http.StatusOK || json.Unmarshal(opened[len(opened)-1].Args(), &args) != nil || args.Turn == nil || args.Turn.LeftOut+len(args.Turn.History) != 80 {
			t.Fatalf("%d %+v", resp.StatusCode, args.Turn)
		}
		full[size] = len(args.Turn.History)
	}
	if d := cmp.Diff(map[int]int{1: 24, 2: 3}, full); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		path, body, session string
		history             []catalog.ChatMessage
		leftOut             int
		instruction         string
	}{
		{"completions", `"messages":` + all, "", before, 1, "Be brief."},
		{"completions", `"messages":` + all, "s1", nil, 0, "Be brief."},
		{"completions", `"messages":` + messages([2]string{"user", "lost"}, [2]string{"user", long}, [2]string{"assistant", "Hi"}), "", []catalog.ChatMessage{{Role: "user", Content: long}, {Role: "agent", Content: "Hi"}}, 1, ""},
		{"completions", `"messages":` + messages([2]string{"user", "lost"}, [2]string{"user", long + long}, [2]string{"assistant", "Hi"}), "", []catalog.ChatMessage{{Role: "agent", Content: "Hi"}}, 2, ""},
		{"completions", `"messages":` + messages([2]string{"system", strings.Repeat("é", maxInstructions)}), "", nil, 0, strings.Repeat("é", maxInstructions/2)},
		{"responses", `"instructions":"In German.","input":` + all, "", before, 1, "In German.\nBe brief."},
		{"responses", `"instructions":"In German.","input":"` + question + `"`, "", nil, 0, "In German."},
		{"responses", `"input":"` + question + `"`, "", nil, 0, ""},
	} {
		path := map[string]string{"completions": "/v1/chat/completions", "responses": "/v1/responses"}[c.path]
		header := bearer()
		if c.session != "" {
			header["X-Session-Id"] = []string{c.session}
		}
		resp := w.call("POST", path, `{"model":"planner",`+c.body+`}`, header, nil)
		opened := w.submits("plan.open")
		var args catalog.PlanOpen
		if err := json.Unmarshal(opened[len(opened)-1].Args(), &args); err != nil || resp.StatusCode != http.StatusOK || args.Task != question {
			t.Fatalf("%s: %d %+v, %v", c.body, resp.StatusCode, args, err)
		}
		var about catalog.TurnContext
		if args.Turn != nil {
			about = *args.Turn
		}
		if d := cmp.Diff(catalog.TurnContext{History: c.history, LeftOut: c.leftOut}, about); d != "" {
			t.Errorf("%.80s in session %q: %s", c.body, c.session, d)
		}
		if d := cmp.Diff(catalog.Transient{AddedInstruction: c.instruction}, catalog.TransientOf(opened[len(opened)-1].Transient())); d != "" {
			t.Errorf("%.80s in session %q: %s", c.body, c.session, d)
		}
	}
}

// TestOddHistories: no message of the past breaks a request, in either API. What cannot be used is
// left out, and counted.
func TestOddHistories(t *testing.T) {
	var w *world
	var came atomic.Pointer[[]string] // images, with the dispatch
	w = newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		came.Store(&h.Images)
		completing(&w)(h, say)
	})
	user, agent := func(s string) catalog.ChatMessage { return catalog.ChatMessage{Role: "user", Content: s} }, func(s string) catalog.ChatMessage { return catalog.ChatMessage{Role: "agent", Content: s} }
	call := `{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}`
	for before, want := range map[string]catalog.TurnContext{
		`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:,"}}]}`: {History: []catalog.ChatMessage{user("look\n[image_url left out]")}},
		`{"role":"user","content":[{"type":"input_image","image_url":7},{"type":"<b>"},{},null,4]}`:                   {History: []catalog.ChatMessage{user("[input_image left out]\n[part left out]\n[part left out]\n\n[part left out]")}},
		`{"role":"user","content":["a","b"]}`:                                                                           {History: []catalog.ChatMessage{user("a\nb")}},
		`{"role":"user","content":{"type":"text","text":"a"}}`:                                                          {History: []catalog.ChatMessage{user("a")}},
		`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`:                                            {History: []catalog.ChatMessage{agent("no")}},
		`{"role":"assistant","content":null,"refusal":"no","tool_calls":[]}`:                                            {History: []catalog.ChatMessage{agent("no")}},
		`{"role":"assistant","content":"yes","refusal":null,"tool_calls":[],"audio":null}`:                              {History: []catalog.ChatMessage{agent("yes")}},
		`{"role":"user","content":"cut \ud83d"},{"role":"assistant","content":"\ud83d\ude00"}`:                          {History: []catalog.ChatMessage{user("cut \ufffd"), agent("\U0001f600")}},
		`{"role":"assistant"},{"role":"assistant","content":""}`:                                                        {},
		`{"role":"assistant","tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"a","content":"1"}`:             {LeftOut: 1},
		`{"role":"assistant","content":null,"function_call":{"name":"x"}},{"role":"function","name":"x","content":"1"}`: {LeftOut: 1},
		`{"type":"function_call","name":"x"},{"type":"function_call_output","output":"1"},{"type":"reasoning"}`:         {LeftOut: 3},
		`{"role":"critic","content":"bad"},{"role":7,"content":"a"},{"role":"user","content":7},"x",null,[]`:            {LeftOut: 6},
	} {
		for path, member := range map[string]string{"/v1/chat/completions": "messages", "/v1/responses": "input"} {
			resp := w.call("POST", path, `{"model":"planner","`+member+`":[`+before+`,{"role":"user","content":"`+question+`"}]}`, bearer(), nil)
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s: %d", path, before, resp.StatusCode)
				continue
			}
			opened := w.submits("plan.open")
			var args catalog.PlanOpen
			if err := json.Unmarshal(opened[len(opened)-1].Args(), &args); err != nil || args.Task != question {
				t.Fatalf("%s: %+v, %v", before, args, err)
			}
			var got catalog.TurnContext
			if args.Turn != nil {
				got = *args.Turn
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s: %s", path, before, d)
			}
		}
	}
	const png, https, odd = "data:image/png;base64,iVBORw0KGgo=", "https://example.org/a.png", "http://example.org/a.png"
	image := func(url string) string { return `{"type":"image_url","image_url":{"url":"` + url + `"}}` }
	for content, want := range map[string]struct {
		task         string
		images, came []string
	}{
		`{"type":"text","text":"look"},` + image(png) + `,{"type":"input_image","image_url":"` + https + `"}`: {"look", []string{intents.Digest([]byte(png)), https}, []string{png}},
		image(png): {"[image]", []string{intents.Digest([]byte(png))}, []string{png}},
		image(odd) + `,` + image("data:text/html;base64,AAAA") + `,{"type":"input_audio"}`: {"[image_url left out]\n[image_url left out]\n[input_audio left out]", nil, nil},
		strings.Repeat(image(https)+",", maxImages) + image(https):                         {"[image_url left out]", slices.Repeat([]string{https}, maxImages), nil},
	} {
		resp := w.call("POST", "/v1/chat/completions", `{"model":"planner","messages":[{"role":"user","content":[`+content+`]}]}`, bearer(), nil)
		opened := w.submits("plan.open")
		var args catalog.PlanOpen
		if err := json.Unmarshal(opened[len(opened)-1].Args(), &args); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", content, resp.StatusCode, err)
		}
		var got []string
		if args.Turn != nil {
			got = args.Turn.Images
		}
		if args.Task != want.task || !slices.Equal(got, want.images) || !slices.Equal(*came.Load(), want.came) {
			t.Errorf("%s: task %q, images %q, with the dispatch %q", content, args.Task, got, *came.Load())
		}
	}
}
