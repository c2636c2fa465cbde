package client

import (
	"encoding/json"

	"aob.dev/writ/internal/bus"
)

// Turn is a turn of a plan, as its frames report it.
type Turn struct {
	PlanID   string          `json:"plan_id"`
	Status   string          `json:"status"` // "held": the plan waits for approval
	Response string          `json:"response,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Failure  json.RawMessage `json:"failure,omitempty"`

	Progress func(bus.StatusData)  `json:"-"` // receives each status frame; may be nil
	Tokens   func(bus.ContentData) `json:"-"` // receives the text while it comes; may be nil
	Last     string                `json:"-"` // id of the last frame
}

// Take adds a frame.
func (t *Turn) Take(f Frame) (err error) {
	t.Last = f.ID
	switch bus.FrameKind(f.Event) {
	case bus.FrameToken:
		var d bus.ContentData
		if json.Unmarshal(f.Data, &d) == nil && t.Tokens != nil {
			t.Tokens(d)
		}
	case bus.FrameStatus:
		var s bus.StatusData
		if json.Unmarshal(f.Data, &s) == nil && t.Progress != nil {
			t.Progress(s)
		}
	case bus.FrameAnswer:
		var a bus.AnswerData
		err = json.Unmarshal(f.Data, &a)
		t.Response, t.Data = a.Response, a.Data
	case bus.FrameError:
		var e bus.ErrorData
		err = json.Unmarshal(f.Data, &e)
		t.Response, t.Failure = e.Reason, e.Failure
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
