package intents

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// partTexts are parts of records as routers write them, and neighbours of theirs.
var partTexts = []string{
	`{"verdict":"allow","code":"OK","intent_id":"sha256:ab","policy_digest":"p","catalog_digest":"c","directory":7,"effect":"pure","executor":"files","key":"9b"}`,
	`{"verdict":"deny","code":"POLICY_DENY","reason":"\u003cno\u003e é\n","policy_ids":["a","b"],"retryable":true,"intent_id":"x","policy_digest":"","catalog_digest":"","directory":-1}`,
	`{"signer":{"kid":"k","role":"task"},"roles":["user"],"task":{"task_id":"t","plan_id":"p","revision":1,"step":2,"skills":["a"],"agent":"x","deadline":"d"},` +
		`"plan":{"plan_id":"p","status":"executing","epoch":1,"revision":1,"replan_count":0,"steps":2,"by_agent":true},` +
		`"skill":{"name":"s","digest":"d","effect":"once","kind":"agent","destructive":"yes"},"approvals":null,"now":"2026-11-30T17:21:47.573Z"}`,
	`{"signer":{"kid":"","role":""},"roles":[],"approvals":[{"user_id":"ana"}],"now":"","scopes":{"b":1, "a":2},"budget":{"day":1,"user":2,"turn":3}}`,
	`{"header":"h","payload":"{\"a\":\"\\n\"}","sig":"s"}`,
}

// sameParts has each reader of parts read a text, and compares with encoding/json.
func sameParts(t *testing.T, text []byte) {
	t.Helper()
	same(t, text, ReadDecision)
	same(t, text, ReadInputs)
	same(t, text, ReadSigned)
	same(t, text, func(part []byte) (Context, error) { return ReadPart(part, func(c *Cursor, x *Context) { x.Read(c) }) })
	same(t, text, func(part []byte) (string, error) { return ReadPart(part, func(c *Cursor, s *string) { *s = c.Text() }) })
	type mixed struct {
		Raw  json.RawMessage
		Yes  bool
		Many []string
		N    int
	}
	same(t, text, func(part []byte) (mixed, error) {
		return ReadPart(part, func(c *Cursor, m *mixed) { c.Members("Raw", &m.Raw, "Yes", &m.Yes, "Many", &m.Many, "N", &m.N) })
	})
}

func same[T any](t *testing.T, text []byte, read func([]byte) (T, error)) {
	t.Helper()
	var want T
	err1 := json.Unmarshal(text, &want)
	got, err2 := read(text)
	if (err1 == nil) != (err2 == nil) {
		t.Fatalf("%s: encoding/json: %v, ours: %v", text, err1, err2)
	}
	if diff := cmp.Diff(want, got); err1 == nil && diff != "" {
		t.Fatalf("%s (-encoding/json +ours):\n%s", text, diff)
	}
}

// TestReadParts: a part is read as encoding/json reads it, whatever was made of it: members that are
// missing, repeated, in another order, spelling or case, of another type, or unknown.
func TestReadParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	texts := append(slices.Clone(partTexts), `{"Raw":{"a":[1]},"Yes":true,"Many":["x","y"],"N":3}`, `{"session_id":"s","turn_id":"t","revision":2,"labels":{"a":"b"},"agent":{"name":"n","digest":"d"}}`, `"x"`, `null`)
	pieces := []string{`"`, `,`, `:`, `{`, `}`, `[`, `]`, `\`, `null`, `true`, `1`, `-0`, `1.5`, `1e400`, `99999999999999999999`, ` `, "\n", `\u0041`, "\xff", `"N":1,`, `"n":1,`, `"code":"x",`, `"Code":"x",`, `"task":{"step":9},`, `"roles":null,`}
	for range 20_000 {
		text := []byte(texts[r.IntN(len(texts))])
		for range r.IntN(3) {
			at := r.IntN(len(text) + 1)
			end := min(at+r.IntN(12)*r.IntN(2), len(text))
			text = slices.Replace(text, at, end, []byte(pieces[r.IntN(len(pieces))])...)
		}
		sameParts(t, text)
	}
}

func FuzzReadPart(f *testing.F) {
	for _, text := range partTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { sameParts(t, text) })
}

// TestVerbatim: the count is that of the bytes one by one.
func TestVerbatim(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 50_000 {
		text := make([]byte, r.IntN(40))
		for i := range text {
			if text[i] = byte(' ' + r.IntN('~'-' ')); r.IntN(30) == 0 {
				text[i] = byte(r.IntN(256))
			}
		}
		want := slices.IndexFunc(text, func(c byte) bool { return !asItIs[c] })
		if want < 0 {
			want = len(text)
		}
		if got := verbatim(string(text)); got != want {
			t.Fatalf("%q: %d, want %d", text, got, want)
		}
	}
}
