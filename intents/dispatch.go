package intents

import (
	"encoding/json"
	"slices"
)

// Dispatch is the message to an executor: the signed intent and the ticket.
type Dispatch struct {
	Header  string          `json:"header"`  // encoded protected header
	Payload json.RawMessage `json:"payload"` // canonical bytes of the envelope without sig
	Ticket  string          `json:"ticket"`  // compact JWS

	read *canonical // of Payload; nil: it was not canonical
}

// Encode returns the message. Its payload is canonical, and the others are base64url and dots, so
// that nothing is escaped: it is canonical, too.
func (d *Dispatch) Encode() []byte {
	return slices.Concat([]byte(`{"header":"`), []byte(d.Header), []byte(`","payload":`), d.Payload, []byte(`,"ticket":"`), []byte(d.Ticket), []byte(`"}`))
}

// ReadDispatch reads a message, of which its payload stays a part. A sender's JSON encoder may have
// changed how it is written.
func ReadDispatch(raw []byte) (d Dispatch, err error) {
	s := scanner{text: string(raw), plant: true, above: 1}
	c, ok := s.canonical()
	var t taker
	root := t.object(c.tree)
	d = Dispatch{Header: t.text(root["header"]), Payload: raw[c.payload.from:c.payload.to:c.payload.to], Ticket: t.text(root["ticket"])}
	if !ok || t.odd || len(root) != 3 || d.Header == "" || len(d.Payload) == 0 || d.Ticket == "" {
		d = Dispatch{}
		err = UnmarshalStrict(raw, &d)
		return d, err
	}
	args := span{c.args.from - c.payload.from, c.args.to - c.payload.from}
	d.read = &canonical{bytes: d.Payload, tree: root["payload"], args: args}
	return d, nil
}

// Names reports whether an intent_id is that of the payload, or of its canonical form, which is the
// payload from then on. The digest decides.
func (d *Dispatch) Names(id string) bool {
	if IntentID(d.Header, d.Payload) == id {
		return true
	}
	canonical, err := Canonical(d.Payload)
	d.Payload, d.read = canonical, nil
	return err == nil && IntentID(d.Header, canonical) == id
}

// Body is that of the payload; see ReadBody.
func (d *Dispatch) Body() (Body, error) {
	if d.read == nil {
		return ReadBody(d.Payload)
	}
	return d.read.body()
}

// Report is an executor's answer to a dispatch.
type Report struct {
	Status    Status          `json:"status"` // done, failed, indeterminate, unstarted
	Code      Code            `json:"code"`
	Reason    string          `json:"reason,omitempty"`
	Retryable bool            `json:"retryable,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"` // of a failure: its details
	Events    []ReportedEvent `json:"facts,omitempty"`
	Lines     []Line          `json:"lines,omitempty"` // what was written meanwhile
	Transport *Transport      `json:"transport,omitempty"`
	Sources   []Source        `json:"sources,omitempty"` // of the stored content in the result
	Images    []Image         `json:"images,omitempty"`  // of the result, for the model that asked; in no record
}

// Image is an image of a skill's answer, which is in a file of the step.
type Image struct {
	MIMEType string `json:"mime_type"`
	FileID   string `json:"file_id"`
	Data     []byte `json:"data"`
}

// Bounds of the images of one report: their number, and their bytes together.
const (
	MaxImages     = 4
	MaxImageBytes = 1 << 20
)

// BoundImages returns the first images within the bounds.
func BoundImages(list []Image) (out []Image) {
	size := 0
	for _, x := range list {
		if size += len(x.Data); len(out) == MaxImages || size > MaxImageBytes {
			break
		}
		out = append(out, x)
	}
	return out
}
