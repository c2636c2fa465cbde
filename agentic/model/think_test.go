package model

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scripted answers with the given outputs in turn.
type scripted struct {
	outputs []string
	errs    []error
	got     []Request
}

func (s *scripted) Name() string { return "test:scripted" }

func (s *scripted) Complete(_ context.Context, req Request) (Reply, error) {
	n := len(s.got)
	s.got = append(s.got, req)
	r := Reply{Usage: Usage{InputTokens: 10, OutputTokens: 1, Latency: 5}}
	if n < len(s.errs) && s.errs[n] != nil {
		return r, s.errs[n]
	}
	r.Output = json.RawMessage(s.outputs[n])
	return r, nil
}

func TestThink(t *testing.T) {
	m := &scripted{outputs: []string{`{"skills":["rank"]}`}}
	in := SelectInput{Task: "x", Candidates: []Candidate{{"rank", "Ranks rows."}}}
	out, used, err := Think[SelectInput, SelectOutput](t.Context(), m, SelectSkills, "Choose.", in)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(SelectOutput{Skills: []string{"rank"}}, out); d != "" {
		t.Error(d)
	}
	if used != (Usage{10, 1, 5}) {
		t.Errorf("usage %+v", used)
	}
	req := m.got[0]
	if string(req.Input) != `{"task":"x","candidates":[{"name":"rank","description":"Ranks rows."}]}` || req.Instructions != "Choose." || req.Purpose != SelectSkills {
		t.Errorf("request %+v", req)
	}
	if string(req.Schema) != string(OutputSchema(SelectSkills)) {
		t.Errorf("schema %s", req.Schema)
	}
}

func TestThinkAsksOnceMore(t *testing.T) {
	for name, first := range map[string]string{
		"/skills: must be null or array": `{"skills":"rank"}`,
		"/skills: is required":           `{}`,
		"/sql: unknown member":           `{"skills":[],"sql":"drop"}`,
		"/: is not JSON":                 `{"skills":[]`,
		"- /: is not JSON":               `{"skills":[]} {}`,
	} {
		m := &scripted{outputs: []string{first, `{"skills":[]}`}}
		_, used, err := Think[SelectInput, SelectOutput](t.Context(), m, SelectSkills, "Choose.", SelectInput{})
		if err != nil {
			t.Errorf("%s: %v", first, err)
			continue
		}
		if used.InputTokens != 20 || used.OutputTokens != 2 || used.Latency != 10 {
			t.Errorf("usage %+v, want that of both answers", used)
		}
		again := m.got[1].Instructions
		if !strings.HasPrefix(again, "Choose.\n") || !strings.Contains(again, name) {
			t.Errorf("%s: the second question is %q, want the violation %q", first, again, name)
		}
	}
}

func TestThinkRefusesNumbersOutOfRange(t *testing.T) {
	plan := func(step string) string {
		return `{"feasible":true,"reason":"","steps":[{"step":` + step + `,"task":"t","skills":[],"return_spec":{"shape":"string","reason":""}}]}`
	}
	m := &scripted{outputs: []string{plan("1e30"), plan("1")}}
	out, _, err := Think[PlanInput, PlanOutput](t.Context(), m, WritePlan, "", PlanInput{})
	if err != nil || out.Steps[0].Step != 1 || !strings.Contains(m.got[1].Instructions, "out of range") {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestThinkGivesUp(t *testing.T) {
	m := &scripted{outputs: []string{`{"skills":7}`, `{"skills":["a",7]}`}}
	out, used, err := Think[SelectInput, SelectOutput](t.Context(), m, SelectSkills, "Choose.", SelectInput{})
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ErrOutput) || e.Retryable {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "/skills/1") || out.Skills != nil || used.InputTokens != 20 {
		t.Errorf("got %v, %v, %+v", out, err, used)
	}
	if len(m.got) != 2 {
		t.Errorf("asked %d times", len(m.got))
	}
}

func TestThinkPassesErrorsOn(t *testing.T) {
	limit := &Error{Reason: "rate limit", Retryable: true}
	m := &scripted{errs: []error{limit}}
	_, used, err := Think[SelectInput, SelectOutput](t.Context(), m, SelectSkills, "", SelectInput{})
	if !errors.Is(err, limit) || used.InputTokens != 10 {
		t.Errorf("got %v, %+v", err, used)
	}
	m = &scripted{errs: []error{&Error{Reason: "no JSON", Err: ErrOutput}}, outputs: []string{"", `{"skills":[]}`}}
	if _, _, err := Think[SelectInput, SelectOutput](t.Context(), m, SelectSkills, "", SelectInput{}); err != nil {
		t.Error(err)
	}
	if _, _, err := Think[SelectInput, SelectOutput](t.Context(), m, "dream", "", SelectInput{}); err == nil {
		t.Error("a purpose that does not exist was thought about")
	}
}

// TestThinkRemotely goes the whole way to a server and back.
func TestThinkRemotely(t *testing.T) {
	m := newMock(t,
		says(`{"action":"call","skill":"rank","input":"rows","reason":"","suggestion":""}`),
		says(`{"action":"call","skill":"rank","input":"{\"by\":\"mag\"}","reason":"","suggestion":""}`))
	out, used, err := Think[ActionInput, ActionOutput](t.Context(), newTestModel(t, m, nil), ChooseAction, Instructions(ChooseAction, ""), ActionInput{Task: "rank them"})
	if err != nil {
		t.Fatal(err)
	}
	if out.Action != ActCall || string(out.Input) != `{"by":"mag"}` || used.InputTokens != 22 {
		t.Errorf("got %+v, %+v", out, used)
	}
	if again := m.got[1].Messages[0].Content; !strings.Contains(again, "/input") {
		t.Errorf("the second question does not say what was wrong: %s", again)
	}
	bad := newMock(t, says("Sure! Here it is."), says(`{"response":"Ten."}`))
	answer, _, err := Think[ComposeInput, ComposeOutput](t.Context(), newTestModel(t, bad, nil), Compose, Instructions(Compose, ""), ComposeInput{})
	if err != nil || answer.Response != "Ten." {
		t.Errorf("got %+v, %v", answer, err)
	}
}
