package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

// sends is the agent general that sends the parcel which it is asked for, once.
func sends(m *mind) func(model.Request) *model.Response {
	return func(req model.Request) *model.Response {
		tool, all := offered(req, "parcel_send"), exchanges(req)
		switch {
		case tool == nil:
			return &model.Response{Text: "There is no parcel_send.", Model: m.Name()}
		case len(all) > 0 && all[len(all)-1].error() == "":
			return &model.Response{Text: "It is on its way. Thank you for your patience.", Model: m.Name()}
		}
		var n int
		last := req.Messages[len(req.Messages)-1].Text
		_, _ = fmt.Sscanf(last[strings.Index(last, "parcel"):], "parcel %d", &n)
		c := call(tool.Name, fmt.Sprintf(`{"parcel":%d}`, n))
		c.ID = fmt.Sprintf("call_%d", len(req.Messages))
		return &model.Response{Calls: []model.Call{c}, Model: m.Name()}
	}
}

// TestDroppedClients: a client of OpenAI's routes whose connection ends at any frame, and
// that asks again as such clients do, has one turn with one set of effects, and the whole answer.
func TestDroppedClients(t *testing.T) {
	t.Parallel()
	d, m := serveDepot(t, nil), &mind{}
	s := start(t, setup{Skills: []string{d.skills}, Model: general{m, sends(m)}})
	s.holdNothing()
	for name, route := range map[string]struct{ path, input, end string }{
		"completions": {"/v1/chat/completions", `"messages":[{"role":"user","content":%q}]`, "data: [DONE]"},
		"responses":   {"/v1/responses", `"input":%q`, "event: response.completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frames, number := 1000, len(name)*1000 // parcels of its own
			for drop := 0; drop < frames; drop++ {
				number++
				body := fmt.Sprintf(`{"model":"general","stream":true,`+route.input+`}`, fmt.Sprintf("Send parcel %d", number))
				first, _, _ := s.streamed(t, route.path, body, 0, drop)
				again, seen, text := s.streamed(t, route.path, body, 1, 1000)
				if drop == 0 {
					frames = seen
				}
				if first != again || first == "" {
					t.Errorf("dropped after %d frames: plan %q, then %q", drop, first, again)
				}
				if !strings.Contains(text, route.end) || !strings.Contains(text, "patience") {
					t.Errorf("dropped after %d frames: answered\n%s", drop, text)
				}
				if n := d.times("parcel_send", number); n != 1 {
					t.Errorf("dropped after %d frames: sent %d times", drop, n)
				}
			}
			if frames < 3 {
				t.Errorf("an answer of %d frames", frames)
			}
		})
	}
}

// streamed asks for a stream and drops the connection after some frames, as the retry of
// an earlier request where retries is more than 0.
func (s *system) streamed(t *testing.T, path, body string, retries, limit int) (plan string, frames int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Stainless-Retry-Count", fmt.Sprint(retries))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var all strings.Builder
	for lines := bufio.NewReader(resp.Body); frames < limit; {
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		if line == "\n" {
			frames++
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return resp.Header.Get("X-Plan-Id"), frames, all.String()
}
