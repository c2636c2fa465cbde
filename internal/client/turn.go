package client

import (
	"encoding/json"

	"aob.dev/writ/internal/bus"
)

// Turn is a turn of a plan, as its frames report it.
type Turn struct {
	PlanID     string          `json:"plan_id"`
	Status     string          `json:"status"` // "held": the plan waits for approval
	Response   string          `json:"response,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Failure    json.RawMessage `json:"failure,omitempty"`
	Components json.RawMessage `json:"components,omitempty"`

	Progress func(bus.StatusData)  `json:"-"` // receives each status frame; may be nil
	Tokens   func(bus.ContentData) `json:"-"` // receives the text while it comes; may be nil
	Asked    func(bus.ContentData) `json:"-"` // receives what agents say that were asked; may be nil
	Last     string                `json:"-"` // id of the last frame
}

// Take adds a frame.
func (t *Turn) Take(f Frame) (err error) {
	t.Last = f.ID
	switch bus.FrameKind(f.Event) {
	case bus.FrameToken, bus.FrameChildContent:
		var d bus.ContentData
		show := t.Tokens
		if bus.FrameKind(f.Event) == bus.FrameChildContent {
			show = t.Asked
		}
		if json.Unmarshal(f.Data, &d) == nil && show != nil {
			show(d)
		}
	case bus.FrameStatus:
		var s bus.StatusData
		if json.Unmarshal(f.Data, &s) == nil && t.Progress != nil {
			t.Progress(s)
		}
	case bus.FrameAnswer:
		var a bus.AnswerData
		err = json.Unmarshal(f.Data, &a)
		t.Response, t.Data, t.Components = a.Response, a.Data, a.Components
	case bus.FrameError:
		var e bus.ErrorData
		err = json.Unmarshal(f.Data, &e)
		t.Response, t.Failure, t.Data = e.Reason, e.Failure, nil
	case bus.FrameHeld:
		var d bus.HeldData
		err = json.Unmarshal(f.Data, &d)
		t.Status, t.Response, t.Data = "held", d.Text, f.Data
	case bus.FrameDone:
		var d bus.DoneData
		err = json.Unmarshal(f.Data, &d)
		t.Status = d.Status
	default:
	}
	return err
}
