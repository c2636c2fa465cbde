package skills_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// saying is a server whose tool x answers each call with exactly this body; %s stands for the id.
func saying(output, body string) http.Handler {
	honest := serverOf(tool{name: "x", output: output})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(raw))
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(raw, &q) != nil || q.Method != "tools/call" {
			honest.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "%s", string(q.ID)))
	})
}

func result(raw string) string { return `{"jsonrpc":"2.0","id":%s,"result":` + raw + `}` }

// TestOddAnswers: a tool that has answered has run, whatever form its answer has and whether it may
// run again. What there is of it is given, beside what is odd; where nobody can say what became of the
// call, that is its outcome if it must not run twice, so that nothing calls it again.
func TestOddAnswers(t *testing.T) {
	const declared = `{"type":"object","properties":{"id":{"type":"integer"}}}`
	many := strings.Repeat(`{"type":"image","mimeType":"image/png","data":"AAAA"},`, 200)
	for name, tt := range map[string]struct {
		output, body string
		status       intents.Status
		want         string // in its output or details
	}{
		"structured content alone":  {"", result(`{"structuredContent":{"id":7}}`), intents.Done, `{"id":7}`},
		"a part of unknown kind":    {"", result(`{"content":[{"type":"text","text":"saved as 7"},{"type":"json","json":{"a":1}}]}`), intents.Done, `saved as 7\n{\"type\":\"json\"`},
		"structured of null":        {declared, result(`{"content":[{"type":"text","text":"saved as 7"}],"structuredContent":{"id":null}}`), intents.Done, `"text":"saved as 7","odd":["output does not match`},
		"base64 of URLs":            {"", result(`{"content":[{"type":"text","text":"saved as 7"},{"type":"image","mimeType":"image/png","data":"-_-_"}]}`), intents.Done, `"size_bytes":3`},
		"no base64":                 {"", result(`{"content":[{"type":"text","text":"saved as 7"},{"type":"image","mimeType":"image/png","data":"!"}]}`), intents.Done, `"result":"saved as 7","odd":["part 2 was dropped`},
		"too many files":            {"", result(`{"content":[` + many + `{"type":"text","text":"7"}]}`), intents.Done, `"odd":["the 101 parts from part 101 on were dropped`},
		"no structured content":     {declared, result(`{"content":[{"type":"text","text":"saved as 7"}]}`), intents.Done, `"result":"saved as 7","odd":["it declares`},
		"a lone surrogate":          {"", result(`{"content":[],"structuredContent":{"id":7,"name":"\ud800"}}`), intents.Done, `\"id\":7`},
		"a lone surrogate in text":  {"", result(`{"content":[{"type":"text","text":"7 \ud800"}]}`), intents.Done, `"7 `},
		"a member twice":            {"", result(`{"content":[],"structuredContent":{"id":7,"id":8}}`), intents.Done, `can be read in two ways`},
		"no content":                {"", result(`{}`), intents.Done, `""`},
		"a text for an object":      {"", result(`"saved as 7"`), intents.Done, `"result":"saved as 7","odd":["its answer is no object"]`},
		"content of one part":       {"", result(`{"content":{"type":"text","text":"saved as 7"}}`), intents.Done, `"result":"saved as 7","odd":["its content is no list"]`},
		"text of a number":          {"", result(`{"content":[{"type":"text","text":7}]}`), intents.Done, `"text":7`},
		"NaN":                       {"", result(`{"content":[],"structuredContent":{"id":7,"mean":NaN}}`), intents.Done, `{"id":7,"mean":"NaN"}`},
		"infinities":                {"", result(`{"structuredContent":[-Infinity,+inf,nan, 7 ]}`), intents.Done, `["-Infinity","+inf","nan",7]`},
		"NaN for a number":          {`{"type":"object","properties":{"mean":{"type":"number"}}}`, result(`{"structuredContent":{"mean":NaN,"id":7}}`), intents.Done, `"odd":["output does not match the declared schema at /mean`},
		"NaN in a text":             {"", result(`{"content":[{"type":"text","text":"{\"id\": NaN, 7}"}]}`), intents.Done, `{\"id\": NaN, 7}`},
		"structured and other text": {"", result(`{"content":[{"type":"text","text":"saved as 7"}],"structuredContent":{"n":1}}`), intents.Done, `"text":"saved as 7"`},
		"structured of a list":      {declared, result(`{"structuredContent":[7]}`), intents.Done, `"result":[7],"odd":["output does not match`},
		"a resource of nothing":     {"", result(`{"content":[{"type":"resource","resource":{"uri":"a:7"}}]}`), intents.Done, `a:7`},
		"bytes that are no text":    {"", result("{\"content\":[{\"type\":\"text\",\"text\":\"7 \xff\"}]}"), intents.Done, `"7 `},
		"NaN of an enricher":        {"", result(`{"structuredContent":{"status":"ok","domain_type":"d","enricher_id":"e","payload":{"n":NaN}}}`), intents.Done, `"output":{"n":"NaN"}`},
		"an enricher's payload":     {"", result(`{"structuredContent":{"status":"ok","domain_type":"d","enricher_id":"e","payload":{"n":7,"n":8}}}`), intents.Done, `"result":"{\"n\":7,\"n\":8}","odd":["its payload can`},
		"an enricher without one":   {"", result(`{"structuredContent":{"status":"partial","domain_type":"d","enricher_id":"e"}}`), intents.Done, `"result":null,"odd":["it has no payload"]},"status":"partial"`},
		"an enricher's other part":  {"", result(`{"content":[{"type":"image","mimeType":"image/png","data":"!"}],"structuredContent":{"status":"ok","domain_type":"d","enricher_id":"e","payload":{"n":7}}}`), intents.Done, `"result":{"n":7},"odd":["part 1 was dropped`},
		"no JSON":                   {"", `<html>saved</html>`, intents.StatusIndetermined, ""},
		"neither result nor error":  {"", `{"jsonrpc":"2.0","id":%s}`, intents.StatusIndetermined, ""},
		"half an answer":            {"", `{"jsonrpc":"2.0","id":%s,"resu`, intents.StatusIndetermined, ""},
		"an unexplained failure":    {"", result(`{"isError":true}`), intents.StatusIndetermined, ""},
		"a failure that may be one": {"", result(`{"isError":"perhaps","content":[{"type":"text","text":"x"}]}`), intents.StatusIndetermined, ""},
		"an internal error":         {"", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"x"}}`, intents.StatusIndetermined, ""},
		"a question":                {"", result(`{"resultType":"input_required","inputRequests":{}}`), intents.StatusIndetermined, ""},
		"a question with content":   {"", result(`{"resultType":"input_required","content":[{"type":"text","text":"who?"}]}`), intents.StatusIndetermined, ""},
		"an explained failure":      {"", result(`{"isError":true,"content":[],"structuredContent":{"code":"NEEDS_LOGIN"}}`), intents.Failed, `NEEDS_LOGIN`},
		"arguments refused":         {"", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"x"}}`, intents.Failed, ""},
	} {
		for _, effect := range []string{"once", "idempotent", "pure"} {
			t.Run(name+" "+effect, func(t *testing.T) {
				s := newSite(t, saying(tt.output, tt.body))
				b := open(t, map[string]*site{"s": s})
				r := b.Do(t, call(b.pins(t, effect), "x", nil))
				want := tt.status
				if effect != "once" && want == intents.StatusIndetermined {
					want = intents.Failed
				}
				if r.Status != want || r.Retryable || !strings.Contains(string(r.Result), tt.want) {
					t.Errorf("%s: %s %s", fmt.Sprint(r.Status, " ", r.Code), r.Reason, r.Result)
				}
				if s.calls.Load() != 1 && (effect == "once" || tt.status == intents.Done) {
					t.Errorf("called %d times", s.calls.Load())
				}
			})
		}
	}
}
