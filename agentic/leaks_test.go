package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// gossip is a model that repeats its last input to the user, byte by byte. The model itself fails
// where broken says so.
type gossip struct {
	place  string
	broken error
	whole  bool // the server does not stream
}

func (gossip) Name() string { return "test:gossip" }

func (g gossip) Respond(_ context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	out := &model.Response{Model: g.Name()}
	last := req.Messages[len(req.Messages)-1]
	switch {
	case g.broken != nil:
		return nil, g.broken
	case last.Role == model.RoleTool:
		out.Text = "I was told: " + last.Text
	case (g.place == "child" || g.place == "ask") && req.Agent == "hub":
		out.Calls = []model.Call{ask("shop", "Offers?")}
	case g.place == "tool", g.place == "child":
		out.Calls = []model.Call{call("crm_list", struct{}{})}
	default:
		out.Text = "There are two."
	}
	for i := range out.Calls {
		out.Calls[i].ID = "call_1"
	}
	for i := range len(out.Text) {
		if g.whole {
			break
		}
		on(model.Event{Text: out.Text[i : i+1]})
	}
	return out, nil
}

// TestNothingLeaks: whatever fails, with whatever code, streamed or not, and although the models
// repeat their inputs, no code, trace or key reaches the user, and the turn ends in words.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	const trace, key = "goroutine 7 [running]:\nmain.main()\n\t/srv/x.go:7 +0x1d\n\n", "sk-proj-0123456789abcdefghij"
	codes := intents.Codes()
	if len(codes) < 30 {
		t.Fatalf("%d codes", len(codes))
	}
	for _, place := range []string{"tool", "child", "ask", "model", "store"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			for i, info := range slices.Concat(codes, codes) {
				if info.Code == intents.OK || info.Code == intents.ApprovalRequired || info.Code == intents.InFlight && (place == "tool" || place == "child") { // a call that runs is waited for
					continue
				}
				said := "it failed with " + string(info.Code) + " and " + key + " at " + trace
				c := newCore(t)
				asking(c, hub, others)
				g := gossip{place: place, whole: i >= len(codes)}
				switch place {
				case "model":
					g.broken = &model.Error{Reason: "the model cannot be reached", Detail: said, Err: errors.New(said)}
				case "store":
					c.on("session.get", refuse(info.Code, said))
					c.on("session.append", refuse(info.Code, said))
				case "ask":
					c.on("agent.ask", refuse(info.Code, said))
				default:
					c.on("skill.call", refuse(info.Code, said))
				}
				layer(c, g, "task", "manager")
				dispatchTurn(c)
				shownOf := map[bus.FrameKind]string{}
				for _, f := range shown(c) {
					var words map[string]any
					if err := json.Unmarshal(f.Data, &words); err != nil {
						t.Fatal(err)
					}
					for _, name := range []string{"text", "response", "reason", "message"} {
						if s, ok := words[name].(string); ok {
							shownOf[f.Kind] += s
						}
					}
				}
				if shownOf[bus.FrameAnswer]+shownOf[bus.FrameError] == "" {
					t.Errorf("%s: the turn ends without a word: %v", info.Code, shownOf)
				}
				for kind, text := range shownOf {
					if strings.Contains(string(info.Code), "_") && strings.Contains(text, string(info.Code)) || strings.Contains(text, "x.go") || strings.Contains(text, "0123456789abcdef") {
						t.Errorf("%s: %s shows %q", info.Code, kind, text)
					}
				}
			}
		})
	}
}
