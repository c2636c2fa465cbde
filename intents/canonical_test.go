package intents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"
)

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{}`, `{}`},
		{" { \"b\" : 1.0 , \"a\" : [ ] }\n", `{"a":[],"b":1}`},
		{`[1.0,10e-1,0.0,1E2,0e99,100000000000000000000,1e21,0.000001,1e-7]`, `[1,1,0,100,0,100000000000000000000,1e+21,0.000001,1e-7]`},
		{`[9007199254740992,-9007199254740992,0.1,5e-324,1.7976931348623157e308]`, `[9007199254740992,-9007199254740992,0.1,5e-324,1.7976931348623157e+308]`},
		{`"\u0041\/\u000a\u001F\u00e9\ud83d\ude00\u007f"`, `"A/\n` + `\u001f` + "é😀\x7f" + `"`},
		{`{"\ud83d\ude00":1,"\ufb33":2,"é":3,"\n":4,"a":5}`, `{"\n":4,"a":5,"é":3,"😀":1,"` + "\ufb33" + `":2}`},
		{`{"":1}`, `{"":1}`},
		{`true`, `true`},
		{`null`, `null`},
		{`false`, `false`},
		{strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)},
	} {
		got, err := Canonical([]byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("Canonical(%s) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	const inexact = "RFC 8785 would change this number: it is no IEEE 754 double, or -0"
	for _, tt := range []struct {
		name, in        string
		code            Code
		pointer, reason string
	}{
		{"nothing", ``, SchemaInvalid, "", "not JSON"},
		{"half", `{"a":`, SchemaInvalid, "", "not JSON"},
		{"trailing comma", `[1,]`, SchemaInvalid, "", "not JSON"},
		{"two values", `{} {}`, SchemaInvalid, "", "not JSON"},
		{"byte order mark", "\ufeff{}", SchemaInvalid, "", "not JSON"},
		{"comment", `{}//`, SchemaInvalid, "", "not JSON"},
		{"leading zero", `[01]`, SchemaInvalid, "", "not JSON"},
		{"plus", `[+1]`, SchemaInvalid, "", "not JSON"},
		{"NaN", `[NaN]`, SchemaInvalid, "", "not JSON"},
		{"hexadecimal", `[0x10]`, SchemaInvalid, "", "not JSON"},
		{"raw control", "\"a\nb\"", SchemaInvalid, "", "not JSON"},
		{"latin 1", "\"\xe9\"", SchemaInvalid, "", "not UTF-8"},
		{"overlong", "\"\xc0\xaf\"", SchemaInvalid, "", "not UTF-8"},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", SchemaInvalid, "", "not UTF-8"},
		{"lone high", `["\ud83d"]`, SchemaInvalid, "", "not strict I-JSON: a surrogate stands alone"},
		{"lone low", `["\ude00"]`, SchemaInvalid, "", "not strict I-JSON: a surrogate stands alone"},
		{"swapped", `["\ude00\ud83d"]`, SchemaInvalid, "", "not strict I-JSON: a surrogate stands alone"},
		{"duplicate", `{"a":{"b":1,"b":1}}`, SchemaInvalid, "/a/b", "member stands twice"},
		{"duplicate in disguise", `{"a/~":1,"a\/\u007e":2}`, SchemaInvalid, "/a~1~0", "member stands twice"},
		{"beyond 2^53", `{"a":[0,9007199254740993]}`, SchemaInvalid, "/a/1", inexact},
		{"minus zero", `{"a":-0}`, SchemaInvalid, "/a", inexact},
		{"minus zero point zero", `{"a":-0.0e5}`, SchemaInvalid, "/a", inexact},
		{"underflow", `{"a":1e-400}`, SchemaInvalid, "/a", inexact},
		{"underflow of a big exponent", `{"a":1e-99999999999999999999}`, SchemaInvalid, "/a", inexact},
		{"overflow", `{"a":1e400}`, SchemaInvalid, "/a", inexact},
		{"more digits than a double has", `{"a":0.1000000000000000055511151231257827}`, SchemaInvalid, "/a", inexact},
		{"too deep", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), PayloadTooLarge, "", "nested deeper than 32"},
		{"endlessly deep", strings.Repeat("[", 1<<20), PayloadTooLarge, "", "nested deeper than 32"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Canonical([]byte(tt.in))
			var r *Refusal
			if !errors.As(err, &r) || got != nil {
				t.Fatalf("Canonical = %s, %v", got, err)
			}
			if r.Code != tt.code || r.Pointer != tt.pointer || r.Reason != tt.reason {
				t.Errorf("refused with %v, want %s at %q: %s", r, tt.code, tt.pointer, tt.reason)
			}
		})
	}
}

// document is a random JSON text: names and numbers at the corners of RFC 8785,
// in canonical form or not.
type document struct {
	r     *rand.Rand
	kinds int // of pieces of text: the last ones are not JSON or not canonical
	b     strings.Builder
}

func (d *document) value(depth int) {
	switch n := d.r.IntN(12); {
	case n < 3 && depth < 6:
		d.object(depth)
	case n < 5 && depth < 6:
		d.b.WriteByte('[')
		for i := range d.r.IntN(4) {
			if i > 0 {
				d.b.WriteByte(',')
			}
			d.value(depth + 1)
		}
		d.b.WriteByte(']')
	case n < 8:
		d.number()
	case n < 11:
		d.text()
	default:
		d.b.WriteString([]string{"true", "false", "null"}[d.r.IntN(3)])
	}
}

func (d *document) object(depth int) {
	d.b.WriteByte('{')
	for i := range d.r.IntN(5) {
		if i > 0 {
			d.b.WriteByte(',')
		}
		d.text()
		d.b.WriteByte(':')
		d.value(depth + 1)
	}
	d.b.WriteByte('}')
}

func (d *document) number() {
	switch d.r.IntN(5) {
	case 0:
		d.b.WriteString([]string{"0", "-0", "1.0", "1e21", "1e+21", "100000000000000000000", "9007199254740993", "9007199254740992", "999999999999999", "1000000000000000", "1e-7", "0.000001", "5e-324", "1e-400", "1e400", "01", "-", "1.", "0.1e1"}[d.r.IntN(19)])
	case 1:
		d.b.WriteString(strconv.FormatInt(int64(d.r.Uint64())>>d.r.IntN(64), 10))
	case 2:
		d.b.WriteString(strconv.FormatFloat(math.Float64frombits(d.r.Uint64()), "efg"[d.r.IntN(3)], -1, 64))
	default:
		if s, err := jcs.NumberToJSON(math.Float64frombits(d.r.Uint64())); err == nil {
			d.b.WriteString(s)
		} else {
			d.b.WriteByte('0')
		}
	}
}

func (d *document) text() {
	d.b.WriteByte('"')
	for range d.r.IntN(4) {
		d.b.WriteString([]string{"a", "b", "z", "A", "é", "\ufb33", "😀", "\U0010ffff", "\uffff", "\x7f", "/", `\"`, `\\`, `\n`, `\b`, `\/`, `\u0001`, `\u001f`, `\u001F`, `\u0041`, `\u000a`, `\ud83d\ude00`, `\ud83d`, "\xff", "\n"}[d.r.IntN(d.kinds)])
	}
	d.b.WriteByte('"')
}

// TestScannerAgreesWithJCS: bytes are accepted exactly where jcs.Transform
// leaves them as they are, and what Canonical gives is what Transform gives.
func TestScannerAgreesWithJCS(t *testing.T) { scannerAgrees(t, 150_000) }

// scannerAgrees compares over at least so many documents.
func scannerAgrees(t *testing.T, documents int) {
	t.Helper()
	r := rand.New(rand.NewPCG(8785, 7493))
	checked := 0
	check := func(b []byte) (fast bool) {
		t.Helper()
		checked++
		_, fast = scan(b, false)
		out, err := jcs.Transform(b)
		if same := err == nil && bytes.Equal(out, b); fast != same {
			t.Fatalf("scanner says %v, jcs %s, %v for %q", fast, out, err, b)
		}
		got, refused := Canonical(b)
		if refused == nil && !bytes.Equal(got, out) {
			t.Fatalf("Canonical(%q) = %s, jcs %s", b, got, out)
		}
		if refused == nil && err != nil {
			t.Fatalf("Canonical takes %q, jcs: %v", b, err)
		}
		return fast
	}
	var accepted, all int
	for checked < documents {
		d := document{r: r, kinds: 18 + r.IntN(8)}
		d.value(0)
		b := []byte(d.b.String())
		all += 2
		if check(b) {
			accepted++
		}
		if out, err := jcs.Transform(b); err == nil {
			if !check(out) {
				t.Fatalf("canonical %s is not accepted", out)
			}
			accepted++
			mutate(r, out)
			check(out)
		}
	}
	if accepted < all/5 || accepted == all {
		t.Errorf("%d of %d accepted: the documents are not worth much", accepted, all)
	}
}

func mutate(r *rand.Rand, b []byte) {
	for range 1 + r.IntN(2) {
		const bytes = "{}[]\",:\\u0019-.eE+ab \x00\x80\xc3"
		b[r.IntN(len(b))] = bytes[r.IntN(len(bytes))]
	}
}

// TestExactNumbers compares with arithmetic on exact rationals by way of text:
// a double retains its value, its neighbours in text do not.
func TestExactNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(754, 2008))
	for range 20_000 {
		f := math.Float64frombits(r.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
			continue
		}
		for _, format := range []byte("efg") {
			if s := strconv.FormatFloat(f, format, -1, 64); !exactNumber(s) {
				t.Errorf("%s is not exact", s)
			}
		}
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', 16, 64), "e")
		if s := mantissa + "1e" + exponent; exactNumber(s) {
			t.Errorf("%s is exact", s)
		}
	}
}

// TestDiagnoseQuotesNothing: reasons never contain values of the intent.
func TestDiagnoseQuotesNothing(t *testing.T) {
	for _, in := range []string{`{"a":hunter2}`, `{"a":"hunter2`, `{"a":"hunter2\ud83d"}`, `{"a":"hunter2","a":1}`, `["hunter2",-0]`, "\"hunter2\xff\""} {
		_, err := Canonical([]byte(in))
		if err == nil || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("Canonical(%s): %v", in, err)
		}
	}
}

func TestWithoutSig(t *testing.T) {
	for _, tt := range []struct{ in, payload, sig string }{
		{`{"a":1,"sig":"x","z":2}`, `{"a":1,"z":2}`, `"x"`},
		{`{"sig":"x","z":2}`, `{"z":2}`, `"x"`},
		{`{"a":1,"sig":"x"}`, `{"a":1}`, `"x"`},
		{`{"sig":[1,{}]}`, `{}`, `[1,{}]`},
		{`{"a":{"sig":1},"sig":2}`, `{"a":{"sig":1}}`, `2`},
		{`{"a":",\"sig\":","sig":{"sig":3}}`, `{"a":",\"sig\":"}`, `{"sig":3}`},
	} {
		c, err := canonicalize([]byte(tt.in), false)
		if err != nil || c.sig.to == 0 {
			t.Fatalf("%s: %v", tt.in, err)
		}
		payload, sig := c.without()
		if diff := cmp.Diff([]string{tt.payload, tt.sig}, []string{string(payload), string(sig)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
	for _, in := range []string{`{}`, `{"a":{"sig":1}}`, `[{"sig":1}]`, `"sig"`} {
		if c, err := canonicalize([]byte(in), false); err != nil || c.sig.to != 0 {
			t.Errorf("%s: sig at %d, %v", in, c.sig.from, err)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1.0,"a":[-0]}`, `{"\ud83d\ude00":1,"\ufb33":2}`, `[1e21,"\u001f"]`, `{"sig":"a..b"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := Canonical(raw)
		if err != nil {
			return
		}
		if again, err := Canonical(out); err != nil || !bytes.Equal(again, out) {
			t.Errorf("Canonical(%q) = %q, again %q, %v", raw, out, again, err)
		}
		if want, err := jcs.Transform(raw); err != nil || !bytes.Equal(want, out) {
			t.Errorf("Canonical(%q) = %q, jcs %q, %v", raw, out, want, err)
		}
		if !json.Valid(out) {
			t.Errorf("Canonical(%q) = %q", raw, out)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	doc := []byte(`{"actor":{"tenant":"default","user_id":"ana"},"constraints":{"audience":"writ/x","idempotency_key":"sha256:8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4","issued_at":"2026-11-20T10:00:00.000Z","ttl_sec":120},"intent":{"args":{"input":{"active":true},"skill":"outlet_list"},"type":"skill.call"},"version":"1.0"}`)
	spaced := append([]byte(" "), doc...)
	for name, in := range map[string][]byte{"fast": doc, "slow": spaced} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if _, err := Canonical(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
