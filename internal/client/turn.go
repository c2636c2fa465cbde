package client

import (
	"encoding/json"

	"aob.dev/writ/bus"
)

// Turn is a turn of a plan, as its frames report it.
type Turn struct {
	PlanID     string          `json:"plan_id"`
	Status     string          `json:"status"` // "held": the plan waits for approval; "needs_input": the response asks the user
	Response   string          `json:"response,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Failure    json.RawMessage `json:"failure,omitempty"`
	Components json.RawMessage `json:"components,omitempty"`

	WorkflowComplete bool `json:"workflow_complete,omitempty"` // the session is closed

	Progress     func(bus.StatusData)  `json:"-"` // receives each status frame; may be nil
	Tokens       func(bus.ContentData) `json:"-"` // receives the text while it comes; may be nil
	ChildContent func(bus.ContentData) `json:"-"` // receives the text of asked agents; may be nil
	Sent         func(json.RawMessage) `json:"-"` // receives requests to models, if the operator enables that; may be nil
	Last         string                `json:"-"` // id of the last frame
}

// Take adds a frame.
func (t *Turn) Take(f Frame) (err error) {
	t.Last = f.ID
	switch bus.FrameKind(f.Event) {
	case bus.FrameToken, bus.FrameChildContent:
		var d bus.ContentData
		show := t.Tokens
		if bus.FrameKind(f.Event) == bus.FrameChildContent {
			show = t.ChildContent
		}
		if json.Unmarshal(f.Data, &d) == nil && show != nil {
			show(d)
		}
	case bus.FrameStatus:
		var s bus.StatusData
		if json.Unmarshal(f.Data, &s) == nil && t.Progress != nil {
			t.Progress(s)
		}
	case bus.FrameRequest:
		if t.Sent != nil {
			t.Sent(f.Data)
		}
	case bus.FrameAnswer:
		var a bus.AnswerData
		err = json.Unmarshal(f.Data, &a)
		t.Response, t.Data, t.Components = a.Response, a.Data, a.Components
	case bus.FrameError:
		var e bus.ErrorData
		err = json.Unmarshal(f.Data, &e)
		t.Response, t.Failure, t.Data = e.Reason, e.Failure, nil
	case bus.FramePendingApproval:
		var d bus.PendingApprovalData
		err = json.Unmarshal(f.Data, &d)
		t.Status, t.Response, t.Data = "held", d.Text, f.Data
	case bus.FrameDone:
		var d bus.DoneData
		err = json.Unmarshal(f.Data, &d)
		t.Status, t.WorkflowComplete = d.Status, d.WorkflowComplete
	default:
	}
	return err
}
