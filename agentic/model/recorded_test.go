package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func contextual(date, user string) Request {
	r := withTools()
	r.Agent = "executor"
	r.Messages = append([]Message{{Role: RoleSystem, Text: "[Context]\nDate: " + date + "\nTime: 10:00\nUser ID: " + user + "\n"}}, r.Messages...)
	return r
}

func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	keep := func(name string, content []byte) error { return os.WriteFile(filepath.Join(dir, name), content, 0o600) }
	server := newMock(t, func(w http.ResponseWriter, _ *http.Request) {
		begin(w, "a < b, ")
		called(w, `[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}]`)
		end(w, "tool_calls")
	}, says("Other."), fails(400, ""))
	m := Record(newTestModel(t, server, nil), keep)
	if m.Name() != "openai:m" {
		t.Errorf("name %s", m.Name())
	}
	want, err := m.Respond(t.Context(), contextual("2026-01-01", "u"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Respond(t.Context(), contextual("2026-01-01", "v"), nil); err != nil {
		t.Fatal(err)
	}
	failing := contextual("2026-01-01", "w")
	_, err = m.Respond(t.Context(), failing, nil)
	wantError(t, err, false, "refused the request")

	back := NewRecorded(os.DirFS(dir))
	var h collector
	later := contextual("2026-12-31", "u")
	later.Temperature = nil
	got, err := back.Respond(t.Context(), later, h.on)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || h.text() != "a < b, " || len(h.pieces) != 1 {
		t.Errorf("heard %q\n%s", h.pieces, d)
	}
	_, err = back.Respond(t.Context(), failing, nil)
	wantError(t, err, false, `a request of the agent "executor" with 2 messages and 2 tools, is missing`)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%d cassettes, %v", len(entries), err)
	}
}

// TestCassetteNames: every part that determines a reply is in the name, and nothing else.
func TestCassetteNames(t *testing.T) {
	seen := map[string]string{}
	for change, f := range map[string]func(*Request){
		"none":        func(*Request) {},
		"agent":       func(r *Request) { r.Agent = "planner" },
		"system":      func(r *Request) { r.System += "." },
		"message":     func(r *Request) { r.Messages[1].Text += "." },
		"user":        func(r *Request) { r.Messages[0].Text += "User ID: x\n" },
		"role":        func(r *Request) { r.Messages[1].Role = RoleSystem },
		"date in it":  func(r *Request) { r.Messages[1].Text = "[Context]\nDate: x\n" },
		"tool":        func(r *Request) { r.Tools = r.Tools[:1] },
		"schema":      func(r *Request) { r.Tools[1].Schema = json.RawMessage(`{}`) },
		"description": func(r *Request) { r.Tools[1].Description = "x" },
		"choice":      func(r *Request) { r.Choice = ChoiceRequired },
	} {
		r := contextual("2026-01-01", "u")
		f(&r)
		_, name, err := cassetteOf(r)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%s and %s have the same name", change, other)
		}
		seen[name] = change
	}
	r := contextual("2027-02-02", "u")
	r.Messages[0].Text = strings.Replace(r.Messages[0].Text, "10:00", "11:11", 1)
	r.Temperature, r.Stop = nil, []string{"x"}
	if _, name, err := cassetteOf(r); err != nil || seen[name] != "none" {
		t.Errorf("another day has the name of %q, %v", seen[name], err)
	}
}

func TestRecordedFails(t *testing.T) {
	full := errors.New("disk full")
	m := Record(&scripted{name: "a:a"}, func(string, []byte) error { return full })
	if r, err := m.Respond(t.Context(), ask(), nil); !errors.Is(err, full) || r.Usage.InputTokens != 10 {
		t.Errorf("%+v, %v", r, err)
	}
	_, name, err := cassetteOf(ask())
	if err != nil {
		t.Fatal(err)
	}
	broken := NewRecorded(fstest.MapFS{name: {Data: []byte("{")}})
	_, err = broken.Respond(t.Context(), ask(), nil)
	wantError(t, err, false, "cassette "+name)
	bad := ask()
	bad.Tools = []Tool{{Name: "f", Schema: json.RawMessage("{")}}
	_, err = broken.Respond(t.Context(), bad, nil)
	wantError(t, err, false, "no recorded reply")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := broken.Respond(ctx, ask(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
