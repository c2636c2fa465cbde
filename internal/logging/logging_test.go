package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"aob.dev/writ/internal/logging"
)

func vectors(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) < 20 {
		t.Fatalf("%s: %d vectors", file, len(lines))
	}
	return lines
}

// around are texts that vectors stand in.
var around = []string{"%s", "cannot ask %s, try again", `{"error":"no answer for '%s'"}`, "(%s)", "<%s>", "of:%s;"}

// left is the part of a vector that must not be left: all that is no mark or name.
func left(v, got string) bool {
	for _, word := range []string{"ada", "пример", "brien", "Lovelace", "secretpass", "hunter2", "123456", "1234567", "867-5309", "12345678", "1111", "5555", "822463", "0005", "Zm9v", "abc", "c2ln", "YWRh", "AKIAI", "SUACS", "MC4C"} {
		if strings.Contains(v, word) && strings.Contains(got, word) {
			return true
		}
	}
	return got == v
}

func TestGoes(t *testing.T) {
	for _, v := range vectors(t, "goes.txt") {
		for _, form := range around {
			if got := logging.Text(fmt.Sprintf(form, v)); left(v, got) {
				t.Errorf("%q is logged as %q", fmt.Sprintf(form, v), got)
			}
		}
	}
}

func TestTextUnchanged(t *testing.T) {
	for _, v := range vectors(t, "stays.txt") {
		for _, form := range around {
			if in := fmt.Sprintf(form, v); logging.Text(in) != in {
				t.Errorf("%q is logged as %q", in, logging.Text(in))
			}
		}
	}
}

// secret has what it holds shown by whoever prints it.
type secret struct {
	Name  string
	Inner map[string][]any `json:"inner"`
}

type valuer struct{}

func (valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("who", "ada@example.com")) }

// TestDepth: wherever an address stands in a line, it is not written.
func TestDepth(t *testing.T) {
	deep := secret{"ada@example.com", map[string][]any{"ada@example.com": {"ada@example.com", map[string]any{"password": "hunter"}}}}
	for _, text := range []bool{false, true} {
		var out bytes.Buffer
		log := logging.New(&out, slog.LevelDebug, text).With(slog.String("with", "ada@example.com"), slog.String("api_key", "hunter"))
		log.WithGroup("ada@example.com").InfoContext(t.Context(), "for ada@example.com",
			slog.Any("error", errors.Join(errors.New("no ada@example.com"), io.EOF)), slog.Any("deep", deep), slog.Any("pointer", &deep), slog.Any("valuer", valuer{}),
			slog.Any("raw", json.RawMessage(`{"a":"ada@example.com","n":4111111111111111}`)), slog.Any("bytes", []byte("ada@example.com")), slog.Any("func", struct{ F func() }{}),
			slog.Group("group", slog.Group("inner", slog.String("who", "ada@example.com"), slog.String("token", "hunter"))),
			slog.Int64("card", 4111111111111111), slog.Int64("position", 1732444110123456))
		if got := out.String(); strings.Contains(got, "ada@") || strings.Contains(got, "hunter") || strings.Contains(got, "411111") {
			t.Errorf("%s", got)
		} else if !strings.Contains(got, "1732444110123456") || !strings.Contains(got, "[email]") {
			t.Errorf("too much is taken out: %s", got)
		}
	}
}

// TestLogAttribution: lines name their request, and those of agents who did what for how long.
func TestLogAttribution(t *testing.T) {
	var out bytes.Buffer
	log := logging.New(&out, slog.LevelInfo, false)
	line := func(say func()) (got map[string]any) {
		out.Reset()
		say()
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	ctx := logging.In(t.Context(), "r1")
	by := logging.By(ctx, "planner", "plan")
	for name, tc := range map[string]struct {
		say   func()
		agent any
	}{
		"of a context":     {func() { log.InfoContext(ctx, "x") }, nil},
		"of a trace":       {func() { log.InfoContext(context.Background(), "x", slog.String("trace_id", "r1")) }, nil},
		"of an agent":      {func() { log.InfoContext(by, "x") }, "planner"},
		"without its own":  {func() { logging.WithContext(by, log).Info("x") }, "planner"},
		"the nearer one":   {func() { logging.WithContext(by, log).InfoContext(logging.By(ctx, "b", "x"), "x") }, "b"},
		"with more to say": {func() { logging.WithContext(by, log.With(slog.Int("step", 1))).Info("x") }, "planner"},
	} {
		got := line(tc.say)
		if got["request_id"] != "r1" || got["service"] != "writ" || got["agent_id"] != tc.agent {
			t.Errorf("%s: %v", name, got)
		}
		if _, took := got["duration_ms"].(float64); took != (tc.agent != nil) || (got["action"] != nil) != took {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := line(func() { log.InfoContext(t.Context(), "x") }); got["request_id"] != nil {
		t.Errorf("a line of no request: %v", got)
	}
}

// TestManyLines looks at a great number of lines for what must not be in any: WRIT_CAMPAIGN
// has it look at a million.
func TestManyLines(t *testing.T) {
	lines, seed := 5_000, uint64(1)
	if os.Getenv("WRIT_CAMPAIGN") != "" {
		lines, seed = 1_000_000, rand.Uint64()
		t.Logf("seed %d", seed)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	goes, stays := vectors(t, "goes.txt"), vectors(t, "stays.txt")
	pick := func(of []string) string { return of[random.IntN(len(of))] }
	var out bytes.Buffer
	log := logging.New(&out, slog.LevelInfo, false)
	for i := range lines {
		out.Reset()
		secret, kept := pick(goes), pick(stays)
		text := fmt.Sprintf(pick(around), secret)
		nest := map[string]any{"text": text}
		for range random.IntN(4) {
			nest = map[string]any{"in": []any{nest, kept}}
		}
		switch random.IntN(3) {
		case 0:
			log.InfoContext(t.Context(), text+"; "+kept, slog.String("kept", kept)) //nolint:sloglint // the message is what is tested
		case 1:
			log.InfoContext(t.Context(), kept, slog.String("text", text), slog.String("kept", kept)) //nolint:sloglint // likewise
		case 2:
			log.InfoContext(t.Context(), kept, slog.Any("nest", nest), slog.String("kept", kept)) //nolint:sloglint // likewise
		}
		var line struct {
			Msg, Text, Kept string
			Nest            json.RawMessage
		}
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		said := strings.ReplaceAll(line.Msg, kept, "") + " " + line.Text + " " + strings.ReplaceAll(string(line.Nest), kept, "")
		if line.Kept != kept || left(secret, said) {
			t.Fatalf("line %d, of %q and %q: %s", i, secret, kept, out.String())
		}
	}
}
