package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// A cassette is a file with one request and its reply, for answering the same request without the
// model. Its name is a digest of the request, so that a different request finds none. A cassette
// contains whole prompts.
type cassette struct {
	Request  cassetteRequest `json:"request"`
	Response Response        `json:"response"`
}

// cassetteRequest is the part of a request that determines its reply.
type cassetteRequest struct {
	Agent    string    `json:"agent"`
	System   string    `json:"system"`
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools"`
	Choice   Choice    `json:"choice"`
}

// cassetteOf returns the request without date, time and session, and the name of its cassette.
func cassetteOf(r Request) (request cassetteRequest, name string, err error) {
	request = cassetteRequest{Agent: r.Agent, System: r.System, Tools: r.Tools, Choice: r.Choice}
	for _, m := range r.Messages {
		if m.Role == RoleSystem && strings.HasPrefix(m.Text, "[Context]\n") {
			m.Text = timeless(m.Text)
		}
		request.Messages = append(request.Messages, m)
	}
	b, err := json.Marshal(request)
	if err != nil {
		return request, "", err
	}
	sum := sha256.Sum256(b)
	return request, hex.EncodeToString(sum[:]) + ".json", nil
}

// timeless returns a context without the lines that change with every request.
func timeless(text string) string {
	var kept strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		if strings.HasPrefix(line, "Date: ") || strings.HasPrefix(line, "Time: ") || strings.HasPrefix(line, "Session: ") {
			continue
		}
		kept.WriteString(line)
	}
	return kept.String()
}

type recording struct {
	Model
	put func(name string, content []byte) error
}

// Record returns next, with a cassette of every reply passed to put, which stores it under the
// given name, replacing an older one. Failed requests leave none.
func Record(next Model, put func(name string, content []byte) error) Model {
	return recording{next, put}
}

func (r recording) ContextTokens() int { return ContextTokens(r.Model) }

// Respond implements Model. A reply that cannot be stored is an error.
func (r recording) Respond(ctx context.Context, req Request, on func(Event)) (*Response, error) {
	resp, err := r.Model.Respond(ctx, req, on)
	if err != nil {
		return resp, err
	}
	if err := r.keep(req, *resp); err != nil {
		return resp, &Error{Reason: "the model's reply could not be recorded", Err: err}
	}
	return resp, nil
}

func (r recording) keep(req Request, resp Response) error {
	request, name, err := cassetteOf(req)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(cassette{request, resp}); err != nil {
		return err
	}
	return r.put(name, b.Bytes())
}

type recordedModel struct{ cassettes fs.FS }

// NewRecorded answers from the cassettes of [Record], and no other request.
func NewRecorded(cassettes fs.FS) Model { return recordedModel{cassettes} }

// Name is "recorded:cassettes"; a response names the model that originally gave it.
func (r recordedModel) Name() string { return "recorded:cassettes" }

// Respond implements Model. The text arrives in one piece.
func (r recordedModel) Respond(ctx context.Context, req Request, on func(Event)) (*Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Reason: "the model was not waited for", Retryable: true, Err: err}
	}
	resp, err := r.find(req)
	if err != nil {
		return nil, &Error{Reason: "there is no recorded reply to this request", Err: err}
	}
	if resp.Text != "" && on != nil {
		on(Event{Text: resp.Text})
	}
	return resp, nil
}

func (r recordedModel) find(req Request) (*Response, error) {
	_, name, err := cassetteOf(req)
	if err != nil {
		return nil, err
	}
	b, err := fs.ReadFile(r.cassettes, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cassette %s, a request of the agent %q with %d messages and %d tools, is missing", name, req.Agent, len(req.Messages), len(req.Tools))
	}
	if err != nil {
		return nil, fmt.Errorf("cassette %s: %w", name, err)
	}
	var c cassette
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("cassette %s: %w", name, err)
	}
	return &c.Response, nil
}
