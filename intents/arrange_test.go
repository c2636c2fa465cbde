package intents

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
)

// TestArrange: what only has to be sorted is sorted as jcs does it, and what needs
// more is left to it.
func TestArrange(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"b":{"z":1,"a":[{"d":1,"c":2}]},"a":"x"}`, `{"a":"x","b":{"a":[{"c":2,"d":1}],"z":1}}`},
		{"{\"\ufb33\":2,\"😀\":1,\"é\":3,\"\\n\":4,\"a\":5}", "{\"\\n\":4,\"a\":5,\"é\":3,\"😀\":1,\"\ufb33\":2}"},
		{`{"b":{},"a":[]}`, `{"a":[],"b":{}}`},
		{`{"version":"1.0","sig":"x"}`, `{"sig":"x","version":"1.0"}`},
		{`7`, `7`},
	} {
		if got, ok := arrange([]byte(tt.in)); !ok || string(got) != tt.want {
			t.Errorf("%s: %s %v, want %s", tt.in, got, ok, tt.want)
		}
	}
	for _, in := range []string{
		``, `{`, `[`, `{"a"`, `{"a":`, `{"a":1,`, `{"a":1,}`, `[1,]`, `[,1]`, `{"a":1 }`, `{"b":1,"a":2,"b":1}`, `{"a":1,"a":1}`, `{"a":1.0}`, `{"a":-0}`, `{"a":"\u0041"}`,
		`{"a":1}{}`, "\"\xff\"", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
	} {
		if got, ok := arrange([]byte(in)); ok {
			t.Errorf("%s is made %s", in, got)
		}
	}
	deep := strings.Repeat(`{"b":0,"a":`, MaxDepth-1) + "{}" + strings.Repeat("}", MaxDepth-1)
	if got, ok := arrange([]byte(deep)); !ok || !json.Valid(got) {
		t.Errorf("%s: %v", got, ok)
	}
}

// TestArrangeAgreesWithJCS over documents of any kind.
func TestArrangeAgreesWithJCS(t *testing.T) {
	random := rand.New(rand.NewPCG(8785, 1))
	sorted := 0
	for range 30_000 {
		d := document{r: random, kinds: 9}
		d.value(0)
		in := []byte(d.b.String())
		for range 3 {
			if got, ok := arrange(in); ok {
				want, err := jcs.Transform(in)
				if err != nil || !bytes.Equal(want, got) {
					t.Fatalf("%q is made %q, by jcs %q, %v", in, got, want, err)
				}
				if !bytes.Equal(in, got) {
					sorted++
				}
			}
			mutate(random, in)
		}
	}
	if sorted < 500 {
		t.Errorf("only %d documents were sorted", sorted)
	}
}

// TestSealArranges: our own papers are never left to the slow path.
func TestSealArranges(t *testing.T) {
	body := Body{Version: Version, Intent: Intent{Type: "skill.call", Args: json.RawMessage(`{"skill":"a","input":{"b":1,"a":"<&>\n"}}`)}, Context: &Context{TurnID: "t", SessionID: "s"}}
	for _, v := range []any{body, Grant{}, Ticket{}, Receipt{}, KeySet{}} {
		raw, err := marshalPlain(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := arrange(raw); !ok {
			t.Errorf("%s needs more than sorting", raw)
		}
	}
}

// TestBytes: an order travels as its members and sig, sorted.
func TestBytes(t *testing.T) {
	for _, body := range []string{
		`{"actor":{"tenant":"t","user_id":"u"},"constraints":{"audience":"x","idempotency_key":"k","issued_at":"2026-11-20T10:00:00.000Z","ttl_sec":1},"intent":{"args":{"trace_id":"x","version":"1.0"},"type":"a"},"version":"1.0"}`,
		`{"actor":{"tenant":"t","user_id":"u"},"constraints":{"audience":"x","idempotency_key":"k","issued_at":"2026-11-20T10:00:00.000Z","ttl_sec":1},"context":{},"intent":{"args":{},"type":"a"},"trace_id":"0af7651916cd43dd8448eb211c80319c","version":"1.0"}`,
	} {
		u, err := newUnverified([]byte(body), b64.EncodeToString([]byte(protectedHeader(TypIntent, strings.Repeat("A", 43)))), strings.Repeat("A", 86))
		if err != nil {
			t.Fatal(err)
		}
		got := u.Bytes()
		if want := u.bytesSlowly(); !bytes.Equal(want, got) || !bytes.Contains(got, []byte(`..AAAA`)) {
			t.Errorf("%s, want %s", got, want)
		}
		if again, err := Canonical(got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s is not canonical", got)
		}
	}
}
